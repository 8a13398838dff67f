"""Random fragments of templates, within the subset that `sailor tokenize` supports, and variables for them."""
from conversations import conversation, value

NAMES = ['s', 't', 'n', 'x', 'items', 'table', 'messages', 'tools', 'missing', 'flag', 'nothing', 'ns.a', 'ns.b']
CONSTANTS = ["'a'", '"b c"', "'\\n'", "'é帆'", "''", "' x '", '0', '1', '2', '-1', '3.5', '1e3', 'true', 'False', 'none', '[]', '{}', "'A' 'b'"]
TESTS = ['defined', 'undefined', 'none', 'string', 'mapping', 'iterable', 'sequence', 'number', 'integer', 'float', 'boolean', 'true', 'false', 'lower', 'upper',
         'odd', 'even', 'divisibleby(2)', "in ['a', 1]", "in('abc')", "eq 'a'", 'ne(1)', 'lt 2', 'ge(1)', 'equalto(none)', '> 1'][:-1]
FILTERS = ['trim', 'length', 'count', 'string', 'upper', 'lower', 'title', 'capitalize', "replace('a', 'b')", "replace('', '-', 2)", "default('d')", "d('e', true)", 'int',
           'int(7)', 'float', 'abs', 'tojson', 'tojson(indent=2)', 'tojson(ensure_ascii=true)', "tojson(separators=(',', ':'))", 'tojson(sort_keys=true)', 'join', "join(', ')",
           'first', 'last', 'list', 'reverse', 'items|list', 'dictsort', "dictsort(by='value')", 'dictsort(true, reverse=true)', "map('upper')|list", "map(attribute='role')|list",
           "map(attribute='k', default='q')|list", "select('string')|list", "reject('none')|list", 'select|list', "selectattr('role', 'equalto', 'user')|list",
           "rejectattr('content')|list", "selectattr('content', 'defined')|map(attribute='content')|join('|')", "trim('ab')", "join('-', attribute='role')"]
METHODS = ['.strip()', ".strip('ab ')", '.lstrip()', ".rstrip('\\n')", '.split()', ".split(' ')", ".split('a', 1)", '.rsplit(none, 1)', ".rsplit('a', 1)", '.splitlines()', ".splitlines(true)",
           ".startswith('a')", ".endswith(('a', 'b'))", ".replace('a', 'xy')", ".replace(' ', '', 1)", '.upper()', '.lower()', '.capitalize()', '.title()', ".find('a')", ".rfind('b')",
           ".removeprefix('a')", ".removesuffix('b')", '.isspace()', '.isupper()', ".join(['x', 'y'])", ".get('a')", ".get('b', 3)", '.items()|list', '.keys()|list',
           '.values()|list', '.isdigit()']
BINARY = ['+', '-', '*', '/', '//', '~', '==', '!=', '<', '<=', '>', '>=', 'in', 'not in', 'and', 'or', '+', '~', '==']


def expression(rng, depth=3):
    def inner():
        return expression(rng, depth - 1)
    kind = rng.randrange(16) if depth else rng.randrange(3)
    if kind in (0, 1):
        return rng.choice(NAMES)
    if kind == 2:
        return rng.choice(CONSTANTS)
    if kind in (3, 4):
        return f'{inner()} {rng.choice(BINARY)} {inner()}'
    if kind in (5, 6):
        return f'{atom(rng, depth)}|{rng.choice(FILTERS)}'
    if kind == 7:
        return f"{atom(rng, depth)} is {rng.choice(['', 'not '])}{rng.choice(TESTS)}"
    if kind == 8:
        return f'{atom(rng, depth)}{rng.choice(METHODS)}'
    if kind == 9:
        return f"({inner()} if {inner()}{' else ' + inner() if rng.random() < 0.7 else ''})"
    if kind == 10:
        return f'{atom(rng, depth)}[{inner()}]'
    if kind == 11:
        bounds = [str(rng.randrange(-4, 5)) if rng.random() < 0.6 else '' for _ in range(2)]
        step = rng.choice(['', ':', ':2', ':-1', ':-2'])
        return f"{rng.choice(NAMES)}[{':'.join(bounds)}{step}]"
    if kind == 12 and rng.random() < 0.2:  # of numbers: that of texts is not supported
        return f"{rng.choice(['n', '7', '-2.5'])} % {rng.choice(['n', '3', '-4', '0.5'])}"
    if kind == 12:
        return f"{rng.choice(['not ', '-', 'not '])}{inner()}"
    if kind == 13:
        return '[' + ', '.join(inner() for _ in range(rng.randrange(4))) + ']'
    if kind == 14:
        return '{' + ', '.join(f'{rng.choice(CONSTANTS[:9])}: {inner()}' for _ in range(rng.randrange(3))) + '}'
    return f"{atom(rng, depth)}.{rng.choice(['role', 'content', 'a', 'b', 'function'])}"


def atom(rng, depth):
    return rng.choice(NAMES + ["'a bAb'", 'items', 'messages', 'table', 's']) if rng.random() < 0.7 else f'({expression(rng, depth - 1)})'


def sign(rng):
    return rng.choice(['', '', '', '-', '+'])


def tag(rng, text):
    return '{%' + sign(rng) + ' ' + text + ' ' + sign(rng) + '%}'


def output(rng, depth=3):
    return '{{' + rng.choice(['', '', '-']) + ' ' + expression(rng, depth) + rng.choice([' ', ' ', '|safe ']) + rng.choice(['', '', '-']) + '}}'


def space(rng):
    return ''.join(rng.choice([' ', '\n', '  ', '\t', 'word', '\r\n', '']) for _ in range(rng.randrange(4)))


def block(rng, depth, in_loop=False, captured=False):
    made = space(rng)
    for _ in range(1 + rng.randrange(2)):
        made += statement(rng, depth, in_loop, captured) + space(rng)
    return made


def statement(rng, depth, in_loop, captured):
    kind = rng.randrange(12)
    if kind < 3 or depth == 0:
        return output(rng, 2)
    if kind == 3:
        return tag(rng, f"set {rng.choice(['s', 'n', 'x', 'ns.a', 'ns.b', 'y'])} = {expression(rng, 2)}") + output(rng, 1)
    if kind == 4:
        made = tag(rng, f'if {expression(rng, 2)}') + block(rng, depth - 1, in_loop, captured)
        if rng.random() < 0.4:
            made += tag(rng, f'elif {expression(rng, 2)}') + block(rng, depth - 1, in_loop, captured)
        if rng.random() < 0.5:
            made += tag(rng, 'else') + block(rng, depth - 1, in_loop, captured)
        return made + tag(rng, 'endif')
    if kind in (5, 6):
        names, over = rng.choice([('i', 'items'), ('i', 'range(4)'), ('m', 'messages'), ('k, v', 'table.items()'), ('k, v', 'table|dictsort'), ('c', 's'), ('i', expression(rng, 2))])
        condition = f' if {expression(rng, 2)}' if rng.random() < 0.3 else ''
        loop = rng.choice(['loop.index', 'loop.index0', 'loop.first', 'loop.last', 'loop.length', 'loop.revindex', 'loop.revindex0', 'loop.previtem', 'loop.nextitem', 'loop.depth'])
        first = '{{ ' + rng.choice([names.split(',')[0], loop, loop + ' is defined', f"'x' if {loop}"]) + ' }}'
        other = tag(rng, 'else') + block(rng, depth - 1, in_loop, captured) if rng.random() < 0.3 else ''
        return tag(rng, f'for {names} in {over}{condition}') + first + block(rng, depth - 1, True, captured) + other + tag(rng, 'endfor')
    if kind == 7:
        return tag(rng, rng.choice(['set y', 'set s | trim', 'set ns.a'])) + block(rng, depth - 1, False, True) + tag(rng, 'endset') + output(rng, 1)
    if kind == 8 and in_loop:
        return tag(rng, f'if {expression(rng, 1)}') + tag(rng, rng.choice(['break', 'continue'])) + tag(rng, 'endif')
    if kind == 9 and not captured:
        return tag(rng, 'generation') + block(rng, depth - 1, False, True) + tag(rng, 'endgeneration')
    if kind == 10:
        return '{#' + sign(rng) + ' comment {{ x }} ' + sign(rng) + '#}'
    if kind == 11:
        return '{% raw ' + rng.choice(['', '-']) + '%}' + space(rng) + '{{ x }}' + space(rng) + tag(rng, 'endraw')
    return rng.choice(['{{ f(1) }}', "{{ f('a', b=items) }}", '{{ f() }}', '{{ g(n) }}'])


MACRO = "{% macro f(a, b='x', c=a) %}[{{ a }}{{ b }}{{ c }}{{ y }}{% for i in b %}{{ loop.index }}{% endfor %}]{% endmacro %}{% macro g(n) %}{{ n }}{% if n is number and n > 0 %}{{ g(n - 1) }}{% endif %}{% endmacro %}"


def fragment(rng):
    start = "{% set ns = namespace(a=1, b='q') %}"
    if rng.random() < 0.5:  # names that are not variables of the blocks that assign to them
        start += "{% set s, n, x = s, n, x %}{% set y = '' %}"
    if rng.random() < 0.3:
        start += MACRO
    else:
        start += '{% macro f(a, b=2) %}{{ a }}{% endmacro %}{% macro g(n) %}{{ n|length }}{% endmacro %}'
    return start + block(rng, 2)


def variables(rng):
    made = conversation(rng)
    made.update({'s': rng.choice(['a b  A', ' Éa\n', '', 'abc']), 't': rng.choice(['é', 'B\tb', '<a&b>']), 'n': rng.randrange(-3, 12), 'x': value(rng),
                 'items': [value(rng, 1) for _ in range(rng.randrange(4))], 'table': {key: value(rng) for key in rng.sample(['a', 'b', 'B', 'c', 'items'], rng.randrange(4))},
                 'flag': rng.random() < 0.5, 'nothing': None})
    return made
