"""RoboPhD: evolves agent packages (a database-analysis tool and instructions), ranked by Elo over contests."""
