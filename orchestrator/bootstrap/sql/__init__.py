"""Text-to-SQL, wired together: one question asked, a whole data set measured, one query checked."""
