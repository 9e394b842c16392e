"""The page: one HTML file that needs no network, with the answer, interactive figures, tables and a calculator.

A page is words that Python writes (`html`), figures as data (`figures`), and files in `assets/` that draw them in the
browser: `document` puts these together. Curves are drawn by uPlot (assets/uplot.*, MIT, from npm, version 1.6.32).
"""
