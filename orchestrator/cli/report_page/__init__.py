"""One self-contained HTML file that shows runs of a search: no network, and no script but its own."""

from orchestrator.cli.report_page.page import MAX_PAGE_BYTES, PageRun, report_page

__all__ = ["MAX_PAGE_BYTES", "PageRun", "report_page"]
