"""The rules for words: how doc comments begin, what types may be called, and how a commit's subject begins."""
import re
from rules import found, rule

OPENERS = ("By", "Nil", "Of", "So", "That", "What", "Where", "Who")
# One doc comment in fifty may begin with such a word, when no other sentence says it as well.
MOST = 0.02
BANNED = (
    "Desk", "Errands", "Floor", "Helper", "Keep", "Manager", "Office", "Parts", "Places", "Play", "Rounds", "Stage",
    "Theatre", "Thing", "Tidy", "Util", "Utils")
# The subject of the last commit whose own subject needed no area.
BEFORE_AREAS = "twoefay: replay all dead rows beside a forged one"


def doc_comments(text):
    """The first line of every doc comment: its number and its words."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"\s*///(.*)", line)
        if match and not inside:
            yield number, match.group(1).strip()
        inside = bool(match)


@rule
def openers(project):
    count, fragments = 0, []
    for path, swift in project.sources.items():
        for number, words in doc_comments(swift.text):
            count += 1
            if re.match(rf"({'|'.join(OPENERS)})\b", words):
                fragments.append((path, number, words.split()[0]))
    share = len(fragments) / max(count, 1)
    project.notes.append(
        f"dev/check: {len(fragments)} of {count} doc comments begin with a fragment, {100 * share:.1f} %")
    if share >= MOST:
        for path, number, word in fragments:
            yield path, number, f"begins a doc comment with {word}: say what it is or does"


@rule
def type_names(project):
    for path, swift in project.sources.items():
        for line, match in found(r"\b(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)", swift.code):
            words = re.findall(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])", match.group(1))
            for word in words:
                if word in BANNED:
                    yield path, line, f"calls a type {match.group(1)}: {word} is not a word of the field"


@rule
def subjects(project):
    subjects = project.subjects
    # A copy without the history has no commits to look at.
    for subject in subjects[:subjects.index(BEFORE_AREAS)] if BEFORE_AREAS in subjects else []:
        if not re.match(r"[a-z0-9][a-z0-9-]*(, [a-z0-9-]+)*: \S", subject):
            yield "a commit", 1, f"`{subject}`: begin the subject with an area, as in `http2: …`"
        if len(subject) > 72:
            yield "a commit", 1, f"`{subject}` has {len(subject)} characters: 50 are good, 72 the most"
