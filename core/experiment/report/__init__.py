"""Reports of finished experiments and studies: two printed pages, as HTML, PDF or DOCX with the same content."""
