"""A patch as a card shows it: folds, counts, bounded, and never markup."""

from __future__ import annotations

from card_page import patch_html, patch_text

from subagents_nb.notebook.cards.diffs import parse_patch

PATCH = """diff --git a/a.txt b/a.txt
index 1111111..2222222 100644
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@ head
 one
--- two
+++ b/zwei
 three
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/pic.png b/pic.png
new file mode 100644
index 0000000..3333333
GIT binary patch
literal 3
KcmZQzU|?VX000620RR91

literal 0
HcmV?d00001

diff --git a/tool.sh b/tool.sh
old mode 100644
new mode 100755
diff --git "a/tab\\there \\303\\274" "b/tab\\there \\303\\274"
deleted file mode 100644
index 4444444..0000000
--- "a/tab\\there \\303\\274"
+++ /dev/null
@@ -1 +0,0 @@
-gone
\\ No newline at end of file
"""


def test_each_file_is_told_with_what_was_done_to_it() -> None:
    files = parse_patch(PATCH)
    assert [(f.path, f.source, f.what, f.binary, f.added, f.removed) for f in files] == [
        ("a.txt", "", "changed", False, 1, 1),
        ("new name", "old name", "renamed", False, 0, 0),
        ("pic.png", "", "added", True, 0, 0),
        ("tool.sh", "", "mode 100755", False, 0, 0),
        ("tab\there ü", "", "deleted", False, 0, 1),
    ]


def test_lines_that_look_like_headers_are_content_inside_of_a_hunk() -> None:
    assert parse_patch(PATCH)[0].lines[1:] == [" one", "--- two", "+++ b/zwei", " three"]


def test_a_name_with_b_in_it_is_taken_apart_right() -> None:
    assert parse_patch("diff --git a/x b/y b/x b/y\nold mode 100644\nnew mode 100755\n")[0].path == "x b/y"


def test_the_card_shows_folds_with_counts() -> None:
    html = patch_html(PATCH)
    assert html.count("<details>") == 2 and "5 files changed, +1 −2" in html
    assert "old name → new name" in html and "(binary)" in html and "+++ b/zwei" in html
    assert "deleted" in html and "mode 100755" in html


def test_nothing_in_a_patch_is_markup() -> None:
    evil = PATCH.replace("a.txt", "<img src=x onerror=alert(1)>").replace(
        "one", "</pre><script>x</script>\x1b[31m\u202e"
    )
    html, text = patch_html(evil), patch_text(evil)
    for mark in ("<img", "<script", "\x1b", "\u202e"):
        assert mark not in html
    assert "&lt;script&gt;" in html and "\x1b" not in text and "\u202e" not in text


def test_no_more_lines_and_files_are_shown_than_fit() -> None:
    rows = "".join(f"+{n}\n" for n in range(500))
    one = "diff --git a/f{0} b/f{0}\nnew file mode 100644\n--- /dev/null\n+++ b/f{0}\n@@ -0,0 +1,500 @@\n" + rows
    patch = "".join(one.replace("{0}", str(n)) for n in range(60))
    html = patch_html(patch, 100)
    assert len(html) < 16_000 and "+98\n" in html and "+99\n" not in html
    assert "401 more lines" in html and "20 more files" in html and "60 files changed, +30,000" in html
    text = patch_text(patch, 100)
    assert len(text.splitlines()) < 160 and "more lines" in text
    assert len(patch_html("diff --git a/f b/f\n@@ -0,0 +1 @@\n+" + "x" * 100_000)) < 3_000


def test_what_is_no_patch_shows_no_changes() -> None:
    for text in ("", "hello\n@@ -1 +1 @@\n+x", "\0\n\n"):
        assert "No changes" in patch_html(text) and patch_text(text) == "No changes."
    assert parse_patch('diff --git \ndiff --git "\n@@ -9,99 +9,99 @@\ndiff --git a/x b/x\n--- \n+++ \n')[-1].path in (
        "",
        "x",
    )
