"""Random conversations for chat templates: messages with texts of several languages, reasoning and calls of tools."""
import json

PIECES = ['What is a pipeline?', 'Ärger mit dem Schiff', '帆船が好きです。', 'naïve café', '2 + 2 = 4', "it's \"quoted\"", '<|im_end|>', '[INST]', '\t', '\n', '\n\n',
          '  ', ' ', '😀', '&lt;b&gt; <b>', '```python\nprint("x")\n```', '{{ x }}', '\\n', '\u00a0', '<think>\nhm\n</think>', '</think>']
TOOL_NAMES = ['get_weather', 'search', 'add']


def text(rng, most=5):
    return ''.join(rng.choice(PIECES) for _ in range(rng.randrange(most + 1)))


def value(rng, depth=2):
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 7:
        return {rng.choice('abcXYZ') + rng.choice(['', 'ü']): value(rng, depth - 1) for _ in range(rng.randrange(3))}
    return [text(rng, 2), rng.randrange(-5, 100), rng.random() * 10 ** rng.randrange(-6, 20), True, None, False][kind]


def arguments(rng):
    return {name: value(rng) for name in rng.sample(['city', 'unit', 'query', 'n'], rng.randrange(4))}


def tool(rng):
    properties = {name: {'type': rng.choice(['string', 'integer', 'array']), 'description': text(rng, 2)} for name in rng.sample(['city', 'unit', 'n'], rng.randrange(4))}
    parameters = {'type': 'object', 'properties': properties, 'required': list(properties)[:1]}
    return {'type': 'function', 'function': {'name': rng.choice(TOOL_NAMES), 'description': text(rng, 3), 'parameters': parameters}}


def content(rng):
    if rng.random() < 0.9:
        return text(rng)
    return [{'type': 'text', 'text': text(rng)} for _ in range(rng.randrange(3))]


def assistant(rng, calls_tools):
    message = {'role': 'assistant', 'content': content(rng)}
    if rng.random() < 0.2:
        message['reasoning_content'] = text(rng)
    if calls_tools:
        calls = [{'id': f'call{rng.randrange(10**5):05}', 'type': 'function', 'function': {'name': rng.choice(TOOL_NAMES), 'arguments': arguments(rng)}}
                 for _ in range(1 + rng.randrange(2))]
        if rng.random() < 0.2:
            for call in calls:
                call['function']['arguments'] = json.dumps(call['function']['arguments'])
        message['tool_calls'] = calls
        if rng.random() < 0.5:
            message['content'] = rng.choice([None, ''])
    return message


def messages(rng, tools=False):
    made = [{'role': 'system', 'content': text(rng)}] if rng.random() < 0.5 else []
    for _ in range(1 + rng.randrange(4)):
        made.append({'role': 'user', 'content': content(rng)})
        while tools and rng.random() < 0.4:
            made.append(assistant(rng, True))
            for call in made[-1]['tool_calls']:
                made.append({'role': 'tool', 'name': call['function']['name'], 'tool_call_id': call['id'], 'content': text(rng)})
        made.append(assistant(rng, False))
    if rng.random() < 0.3:
        made.pop()
    if rng.random() < 0.05:
        rng.shuffle(made)
    return made


def conversation(rng):
    """The variables of one rendering."""
    tools = rng.random() < 0.4
    variables = {'messages': messages(rng, tools), 'tools': [tool(rng) for _ in range(1 + rng.randrange(2))] if tools else None, 'documents': None,
                 'add_generation_prompt': rng.random() < 0.5, 'bos_token': '<s>', 'eos_token': '</s>'}
    for name, choices in [('enable_thinking', [True, False]), ('date_string', ['26 Jul 2024']), ('pad_token', ['<pad>'])]:
        if rng.random() < 0.3:
            variables[name] = rng.choice(choices)
    return variables
