"""conversations_check.py PROGRAM OUT SEED COUNT: are the tokens and answers that `sailor tokenize --sft` (PROGRAM) makes of conversations those of the
transformers library, for a tokenizer trained here with each of the templates in chat_templates.py? One CSV row each; exit 1 when not."""
import json, os, random, re, subprocess, sys

import conversations
import mixed_text
from chat_templates import TEMPLATES
from token_files import read_documents, read_modes
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

program, out, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
SPECIAL = ['<s>', '</s>', '<|im_start|>', '<|im_end|>', '<|eot_id|>', '<|start_header_id|>', '<|end_header_id|>', '<start_of_turn>', '<end_of_turn>', '<|end|>',
           '<|assistant|>', '<think>']
SHOWN = 3
NOT_COMPARED = ['raw']  # no conversation: its beginning changes with every message


def make_tokenizer():
    """Byte pairs, with a start token that a template's text must not get twice."""
    words = mixed_text.words(rng)
    training = mixed_text.document(rng, words, 300_000).decode('utf-8', 'replace').splitlines(keepends=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(training, trainers.BpeTrainer(vocab_size=3000, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single='<s> $A', special_tokens=[('<s>', tokenizer.token_to_id('<s>'))])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token='<s>', eos_token='</s>')


def render(tokenizer, line, messages, prompt):
    return tokenizer.apply_chat_template(messages, tools=line.get('tools'), tokenize=False, add_generation_prompt=prompt, **line.get('chat_template_kwargs', {}))


def answers(tokenizer, name, line, last):
    """The answers in the text, as ranges of characters; None if they cannot be told."""
    messages = line['messages']
    whole = render(tokenizer, line, messages, False)
    if name == 'thinking':
        return whole, [match.span(1) for match in re.finditer(r'<\|im_start\|>assistant\n(.*?<\|im_end\|>\n)(?=<\|im_start\|>|$)', whole, re.S)][-1 if last else 0:]
    found = []
    for i in [i for i, message in enumerate(messages) if message['role'] == 'assistant'][-1 if last else 0:]:
        prompt, upto = render(tokenizer, line, messages[:i], True), render(tokenizer, line, messages[:i + 1], False)
        if not (upto.startswith(prompt) and whole.startswith(upto)) or len(prompt) == len(upto):
            return None
        found.append((len(prompt), len(upto)))
    return whole, found


def expected(tokenizer, name, line, last):
    """Tokens and which of them are answers; None if the line is refused."""
    try:
        if name == 'marked':
            made = tokenizer.apply_chat_template(line['messages'], tools=line.get('tools'), return_dict=True, return_assistant_tokens_mask=True)
            mask = made['assistant_masks']
            if last:
                begin = len(mask)
                while begin and not mask[begin - 1]: begin -= 1
                while begin and mask[begin - 1]: begin -= 1
                mask = [0] * begin + mask[begin:]
            return (made['input_ids'], mask) if any(mask) else None
        located = answers(tokenizer, name, line, last)
    except Exception:
        return None
    if not located or not located[1]:
        return None
    text, ranges = located
    made = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return made['input_ids'], [int(any(begin < to and at < end for begin, end in ranges)) for at, to in made['offset_mapping']]


def tokenize(directory, lines, options):
    path = os.path.join(directory, 'lines.jsonl')
    with open(path, 'w') as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=rng.random() < 0.5) + '\n')
    return subprocess.run([program, '--sft', path, '-o', directory, '--model', os.path.join(directory, 'tokenizer.json'), '--validation', '0', '-q', *options],
                          capture_output=True, text=True)


def line_of(rng, name):
    made = conversations.conversation(rng)
    line = {'id': rng.randrange(9), 'messages': made['messages']}
    if name == 'thinking' or rng.random() < 0.7:  # marks of the template within texts would be ambiguous for the regular expression
        for message in line['messages']:
            if isinstance(message.get('content'), str):
                message['content'] = message['content'].replace('<|im_end|>', '').replace('\n', ' ')
            elif name == 'thinking':  # which renders texts alone
                message['content'] = ''
    if made['tools']:
        line['tools'] = made['tools']
    if 'date_string' in made:
        line['chat_template_kwargs'] = {'date_string': made['date_string']}
    return line


def compare(tokenizer, name, directory, last):
    options = ['--answers', 'last'] if last else []
    lines = [line_of(rng, name) for _ in range(count)]
    lines = [(line, expected(tokenizer, name, line, last)) for line in lines if name != 'thinking' or line['messages'][0]['role'] != 'assistant']
    good = [(line, tokens) for line, tokens in lines if tokens]
    result = tokenize(directory, [line for line, _ in good], options)
    if result.returncode:
        print(f'{name}: {result.stderr}', file=sys.stderr)
        return len(good), 0, len(good)
    stem = os.path.join(directory, 'train')
    ours = list(zip(read_documents(stem), read_modes(stem)))
    wrong = [(line, a, b) for (line, b), a in zip(good, ours) if (a[0], a[1]) != (b[0], b[1])]
    for line, a, b in wrong[:SHOWN]:
        print(f'{name}: {json.dumps(line, ensure_ascii=False)}\n  ours   {tokenizer.convert_ids_to_tokens(a[0])} {a[1]}\n  theirs {tokenizer.convert_ids_to_tokens(b[0])} {b[1]}', file=sys.stderr)
    return len(good), sum(sum(mode) for _, mode in ours), len(wrong) + abs(len(ours) - len(good))


tokenizer, ok = make_tokenizer(), True
print('template,answers,conversations,answer_tokens,different,ok')
for number, (name, template) in enumerate(TEMPLATES.items()):
    if name in NOT_COMPARED:
        continue
    directory = os.path.join(out, str(number))
    tokenizer.chat_template = template
    tokenizer.save_pretrained(directory)
    if number % 2:  # the form of earlier releases
        os.remove(os.path.join(directory, 'chat_template.jinja'))
        path = os.path.join(directory, 'tokenizer_config.json')
        with open(path) as file:
            config = json.load(file)
        config['chat_template'] = [{'name': 'rag', 'template': '{{ broken'}, {'name': 'default', 'template': template}] if number % 4 == 1 else template
        with open(path, 'w') as file:
            json.dump(config, file)
    for last in (False, True):
        conversations_of, tokens, wrong = compare(tokenizer, name, directory, last)
        good = wrong == 0 and conversations_of > 0 and tokens > 0
        print(f"{name},{'last' if last else 'all'},{conversations_of},{tokens},{wrong},{'yes' if good else 'no'}", flush=True)
        ok = ok and good
sys.exit(not ok)
