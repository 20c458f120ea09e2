"""Reports of finished experiments and studies: two printed pages, as HTML, PDF or DOCX of the same parts."""
