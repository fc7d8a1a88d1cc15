"""What the page is made of: HTML, Markdown, short texts, the widget's files, comms."""
