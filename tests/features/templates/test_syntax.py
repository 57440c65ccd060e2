"""Template files, Wapiti's syntax and its regular expressions, on examples written by hand."""

import re

import pytest

from seqlab.data import InputError
from seqlab.features import Templates
from seqlab.features._wapiti_regex import WapitiRegex
from seqlab.features.templates.syntax import parse_templates

TOKENS = [[("The", "DT", "1"), ("B-747", "NNP", "-1"), ("flies", "VBZ", "0")]]


def names_at(model, t, tokens=TOKENS, *, edge=False):
    model.fit(tokens)
    names = model.get_edge_names_out() if edge else model.get_feature_names_out()
    matrix = (model.transform_edges if edge else model.transform)(tokens).matrix
    return sorted(names[matrix[t].indices].tolist())


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("u:%x[-1,0]/%x[ 0,1]", "u:The/NNP"),
        ("U:low=%X[0,0]", "u:low=b-747"),
        (r'u:%t[0,0,"\d"]', "u:true"),
        (r'u:%t[0,0,"^\d"]', "u:false"),
        (r'u:%T[0,0,"b"]', "u:false"),  # upper case changes the result, not the match
        ('u:%m[0,0,"^.?.?.?"]', "u:B-7"),
        ('u:%M[0,0,"^.?.?.?"]', "u:b-7"),
        ('u:%m[0,0,".?.?$"]', "u:47"),
        (r'u:%m[0,0,"\l"]', "u:"),
        (r'u:%m[0,0,"\d*$"]', "u:747"),
        (r'u:%t[-2,0,"\u"]', "u:false"),  # applied to the mark _x-1, which has no capital letter
        ('u:%m[-2,0,"^.?.?"]', "u:_x"),
        ("u:%x[-2,0]", "u:_x-1"),
        ("u:%x[2,0]", "u:_x+1"),
        ("u:%x[-6,0]", "u:_x-#"),
        ("u:%x[@1,0]", "u:The"),
        ("u:%x[@-1,0]", "u:flies"),
        ("u:%x[@0,0]", "u:_x-1"),
        ("u:%x[*2,0]", "u:The"),
        ("u:wrd %x[0,0]   # a comment", "u:wrd B-747"),
        (r'u:%t[0,0,"#"]', "u:false"),
        ("u", "u"),
    ],
)
def test_wapiti(template, expected):
    assert names_at(Templates([template], syntax="wapiti"), 1) == [expected]


def test_wapiti_is_recognised():
    assert parse_templates(["U:%x[0,0]", "*:%x[0,1]"])[1] == "wapiti"
    assert parse_templates(["U:%x[0,0]", "U:%X[0,0]"])[1] == "wapiti"
    assert parse_templates(["U:%x[0,0]", (0, 0), "B"])[1] == "crfpp"


def test_star_gives_features_of_labels_and_of_label_pairs():
    model = Templates(["*:%x[0,1]", "b", "u:%x[0,0]"])
    assert names_at(model, 1) == ["*:NNP", "u:B-747"]
    assert names_at(model, 1, edge=True) == ["*:NNP"]
    assert names_at(model, 0, edge=True) == []
    assert model.bigram_templates_ == ["*:%x[0,1]", "b"]


def test_hash_sign_is_text_in_crfpp():
    assert names_at(Templates(["U:%x[0,0]#%x[0,1]", "#U:%x[0,0]"]), 1) == ["U:B-747#NNP"]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "abc", ""),
        ("b", "abc", "b"),
        ("^b", "abc", None),
        ("c$", "abc", "c"),
        ("a*b", "aaab", "aaab"),
        ("a*", "aaab", ""),  # as few as possible
        ("^a?a?", "aaab", "aa"),  # as many as possible
        ("^a?ab", "ab", "ab"),
        (r"^\u\l*$", "London", "London"),
        (r"^\u\l*$", "LONDON", None),
        (r"\p", "U.S.", "."),
        (r"\S\s\S", "a b", "a b"),
        (r"\.", "a.b", "."),
        (r"\D", "12x", "x"),
        (r"\W", "a_b", "_"),
        ("$", "abc", ""),
        ("a$b", "a$b", "a$b"),
        ("^$", "", ""),
        ("^é", "é", "é"),
    ],
)
def test_regular_expressions(pattern, text, expected):
    assert WapitiRegex(pattern).search(text) == expected


@pytest.mark.parametrize("pattern", ["*a", "a**", "?", "a\\"])
def test_bad_regular_expressions(pattern):
    with pytest.raises(InputError, match="regular expression"):
        WapitiRegex(pattern)


# Files.

CHUNK = """# Unigram
U00:%x[-1,0]

U01:%x[0,0]/%x[0,1]

# Bigram
B
"""


def test_file(tmp_path):
    path = tmp_path / "chunk.tpl"
    path.write_text(CHUNK, encoding="utf-8")
    model = Templates.from_file(path, min_count=1)
    assert model.has_label_bigrams
    assert names_at(model, 1) == ["U00:The", "U01:B-747/NNP"]


def test_file_with_byte_order_mark_and_windows_lines(tmp_path):
    path = tmp_path / "chunk.tpl"
    path.write_bytes(b"\xef\xbb\xbf" + CHUNK.replace("\n", "\r\n").encode())
    assert names_at(Templates.from_file(path), 1) == ["U00:The", "U01:B-747/NNP"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X01:%x[0,0]", "must begin with U (label) or B (label pair), not 'X'"),
        ("U01:%x[0]", 'cannot read "%x[0]"; a value is %x[row,column]'),
        ("U01:%x[0,0", 'cannot read "%x[0,0"'),
        ("U01:100%", 'cannot read "%"'),
        ("u:%t[0,0]", '"%t[0,0]" needs a regular expression'),
        ('u:%x[0,0,"a"]', '"%x[0,0,"a"]" takes no regular expression'),
        ('u:%t[0,0,"*"]', "nothing before '*' to repeat"),
    ],
)
def test_errors_name_the_line_of_the_file(tmp_path, line, message):
    path = tmp_path / "chunk.tpl"
    path.write_text(f"# Unigram\n\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)) as error:
        Templates.from_file(path)
    assert f'template "{line}" (line 3 of {path})' in str(error.value)


def test_missing_column_names_the_line(tmp_path):
    path = tmp_path / "chunk.tpl"
    path.write_text("# Unigram\nU03:%x[0,4]\n", encoding="utf-8")
    message = f'template "U03:%x[0,4]" (line 2 of {path}) reads column 4 but tokens have 3 columns'
    with pytest.raises(InputError, match=re.escape(message)):
        Templates.from_file(path).fit(TOKENS)


def test_empty_missing_and_non_utf8_files(tmp_path):
    path = tmp_path / "chunk.tpl"
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(InputError, match="no templates in"):
        Templates.from_file(path)
    path.write_bytes(b"U:\xff%x[0,0]\n")
    with pytest.raises(InputError, match="is not UTF-8"):
        Templates.from_file(path)
    with pytest.raises(FileNotFoundError):
        Templates.from_file(tmp_path / "none")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ((0,), "is not (row, column)"),
        (("word", 0), "the row is an integer"),
        ([], "must be a string"),
        (7, "must be a string"),
        ([(0, 0), 1], "1 is not (row, column)"),
        ((0, 0, "sufix3"), "unknown word form 'sufix3'; did you mean 'suffix3'?"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(InputError, match=re.escape(message)) as error:
        Templates([spec]).fit(TOKENS)
    assert "(templates[0])" in str(error.value)


def test_syntax_can_be_forced():
    with pytest.raises(InputError, match="is Wapiti syntax"):
        Templates(["U:%X[0,0]"], syntax="crfpp").fit(TOKENS)
    assert names_at(Templates(["U:%x[0,0]"], syntax="wapiti"), 1) == ["u:B-747"]
