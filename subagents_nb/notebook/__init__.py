"""The front end in IPython: magics, live views, cards.

In: cells, and messages of the page.
Out: calls of the packages below; HTML, text and messages to the page.
Never: decides anything about a run, or writes its files.
"""
