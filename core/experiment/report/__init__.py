"""Reports of finished experiments and studies: two printed pages, as HTML, PDF or DOCX of the same parts."""

from core.experiment.report.as_docx import docx
from core.experiment.report.as_html import html
from core.experiment.report.as_pdf import pdf
from core.experiment.report.examples import Examples, examples
from core.experiment.report.experiment import CorpusRow, Report, experiment_document
from core.experiment.report.parts import Cover, Document
from core.experiment.report.study import StudyReport, study_document

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
