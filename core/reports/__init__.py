"""Reports of finished experiments and studies: two printed pages, as HTML, PDF or DOCX of the same parts."""

from core.reports.as_docx import docx
from core.reports.as_html import html
from core.reports.as_pdf import pdf
from core.reports.examples import Examples, examples
from core.reports.experiment import CorpusRow, Report, experiment_document
from core.reports.parts import Cover, Document
from core.reports.study import StudyReport, study_document

__all__ = [
    "CorpusRow",
    "Cover",
    "Document",
    "Examples",
    "Report",
    "StudyReport",
    "docx",
    "examples",
    "experiment_document",
    "html",
    "pdf",
    "study_document",
]
