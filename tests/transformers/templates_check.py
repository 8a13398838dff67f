"""templates_check.py CHECK SEED COUNT [TEMPLATE...]: does CHECK (template_check.cpp) render chat templates as the transformers library does? COUNT random
conversations for each of the templates in chat_templates.py, or in the files given (a template, a tokenizer_config.json, or a directory of them), and
random fragments of templates. One CSV row each; exit 1 when not. A template that CHECK does not support is a row of its own kind, for files only."""
import json, os, random, subprocess, sys
from datetime import datetime

import template_fragments
from chat_templates import TEMPLATES
from conversations import conversation
from transformers.utils import chat_template_utils

check, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
NOW = datetime(2024, 7, 26)
FRAGMENTS_PER_CONVERSATION = 40


class Check:
    def __init__(self):
        self.process = subprocess.Popen([check], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def render(self, template, variables):
        self.process.stdin.write(json.dumps({'template': template, 'variables': variables}) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def render_there(template, variables):
    """What the library makes of it, in the form of CHECK's answers."""
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        compiled.environment.globals['strftime_now'] = NOW.strftime
        text, generated = chat_template_utils._render_with_assistant_indices(compiled, **variables)
        text.encode()
    except Exception as error:
        return {'error': f'{type(error).__name__}: {error}'}
    return {'text': text, 'generated': [list(part) for part in generated if part[0] < part[1]]}


def given(path):
    """The templates of a file or a directory, by name."""
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            yield from given(os.path.join(path, name))
        return
    with open(path) as file:
        text = file.read()
    if not path.endswith('.json'):
        yield path, text
        return
    template = json.loads(text).get('chat_template') or []
    for item in [{'name': 'default', 'template': template}] if isinstance(template, str) else template:
        yield f"{path}:{item['name']}", item['template']


def differ(name, template, variables, ours, theirs):
    print(f'{name}: {template if len(template) < 500 else ""}\n  variables {json.dumps(variables) if len(template) > 500 else {k: v for k, v in variables.items() if k in template}}\n  ours   {ours}\n  theirs {theirs}', file=sys.stderr)


def compare(here, name, template, cases, shown=2):
    """The renderings, those that are errors in both or not supported here, and those that differ."""
    rendered = errors = wrong = 0
    for variables in cases:
        ours, theirs = here.render(template, variables), render_there(template, variables)
        rendered += 1
        unsupported = 'supported' in ours.get('error', '') or 'takes at most' in ours.get('error', '')
        errors += 'error' in theirs or unsupported
        same = unsupported or ('error' in ours if 'error' in theirs else ours == theirs)
        wrong += not same
        if not same and wrong <= shown:
            differ(name, template, variables, ours, theirs)
    return rendered, errors, wrong


def row(name, numbers, status):
    print(','.join([name.replace(',', ';'), *map(str, numbers), status]), flush=True)


def main():
    here, ok = Check(), True
    print('template,renderings,errors,different,ok')
    files = [item for path in sys.argv[4:] for item in given(path)]
    for name, template in files or TEMPLATES.items():
        if files:
            probe = here.render(template, conversation(rng))
            if 'not supported' in probe.get('error', ''):
                row(name, (0, 0, 0), 'unsupported: ' + probe['error'])
                continue
        numbers = compare(here, name, template, [conversation(rng) for _ in range(count)])
        good = numbers[2] == 0 and (files or numbers[1] < numbers[0] * 0.8)
        row(name, numbers, 'yes' if good else 'no')
        ok = ok and good
    total = [0, 0, 0]
    for _ in range(count * FRAGMENTS_PER_CONVERSATION):
        template = template_fragments.fragment(rng)
        numbers = compare(here, 'fragment', template, [template_fragments.variables(rng)])
        total = [a + b for a, b in zip(total, numbers)]
    good = total[2] == 0 and total[1] < total[0] / 2
    row('fragments', total, 'yes' if good else 'no')
    sys.exit(not (ok and good))


main()
