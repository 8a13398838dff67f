#include "trainer/data/tokenize/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/jinja/json_value.h"

namespace sailor::jinja {
namespace {

using ::testing::HasSubstr;

RenderedText render_all(const std::string& source, const std::string& json = "{}") {
  const Value object = parse_json_value(json);
  std::vector<std::pair<std::string, Value>> variables;
  for (const auto& [name, value] : object.dictionary()->entries) variables.emplace_back(name.text(), value);
  std::tm now{};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  return Template(source, "t.jinja").render(variables, now);
}
std::string render(const std::string& source, const std::string& json = "{}") {
  return render_all(source, json).text;
}
std::string problem(const std::string& source, const std::string& json = "{}") {
  try {
    return "no error, but: " + render(source, json);
  } catch (const InputError& error) {
    return error.what();
  }
}
std::string expression(const std::string& text, const std::string& json = "{}") {
  return render("{{ " + text + " }}", json);
}

TEST(Template, WhiteSpaceAroundTags) {
  EXPECT_EQ(render("a\n  {% if true %}\n  b\n  {% endif %}\n c\n"), "a\n  b\n c");
  EXPECT_EQ(render("a {%- if true -%} b {%- endif -%}\n c"), "abc");
  EXPECT_EQ(render("a\n  {%+ if true +%}\n b{% endif %}"), "a\n  \n b");
  EXPECT_EQ(render(" {{ 1 }}\n{{- 2 -}}\n 3"), " 123");
  EXPECT_EQ(render("a\n {# b #}\nc {#- d -#} e"), "a\nce");
  EXPECT_EQ(render("{% raw %}\n {{ x }} {% if %}{% endraw %}\nz"), "\n {{ x }} {% if %}z");
  EXPECT_EQ(render("a\r\nb\rc\n\n"), "a\nb\nc\n");
  EXPECT_EQ(render("x {% set a = 1 %} y"), "x  y") << "a tag that does not begin its line keeps the space";
  EXPECT_EQ(render("{ {% set a = '%}' %}{{ '}}' }}{{ {'a': {}} }}"), "{ }}{'a': {}}");
}

TEST(Template, LoopsAndBranches) {
  EXPECT_EQ(render("{% for i in [3, 4] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}"
                   "{{ loop.length }}{{ loop.revindex }};{% endfor %}"),
            "10TrueFalse22;21FalseTrue21;");
  EXPECT_EQ(
      render("{% for i in range(5) if i % 2 %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}"),
      "<1>3 1<3> ");
  EXPECT_EQ(render("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}"), "a1b2");
  EXPECT_EQ(render("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i > 3 %}{% break %}{% else %}"
                   "{{ i }}{% endif %}{% endfor %}"),
            "023");
  EXPECT_EQ(
      render(
          "{% for a in 'xy' %}{% for b in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}"),
      "121122");
  EXPECT_EQ(render("{% for i in nothing_there %}x{% endfor %}ok"), "ok");
}

TEST(Template, AssignmentsAreOfTheirBlock) {
  EXPECT_EQ(render("{% set a = 1 %}{% for i in [1, 2] %}{{ a }}{% set a = 5 %}{{ a }}{% endfor %}{{ a }}"),
            "15151");
  EXPECT_EQ(render("{% if true %}{% set a = 1 %}{% endif %}{{ a }}"), "1");
  EXPECT_EQ(render("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor "
                   "%}{{ ns.n }}"),
            "3");
  EXPECT_EQ(render("{% set a, b = 1, 'x' %}{{ b }}{{ a }}"), "x1");
  EXPECT_EQ(render("{% set a | upper %} b{{ 1 }}{% set c = 1 %}{% endset %}[{{ a }}{{ c }}]"), "[ B1]");
  EXPECT_EQ(
      render("{% if not tools is defined %}{% set tools = none %}{% endif %}{{ tools }}", R"({"tools": 3})"),
      "3");
}

TEST(Template, NamesAreThoseOfTheBlockThatAssignsThemFirst) {
  const std::string json = R"({"a": 3})";
  EXPECT_EQ(render("{% for i in [1] %}{{ a }}{% endfor %}{% set a = 1 %}", json), "")
      << "assigned later around the loop";
  EXPECT_EQ(render("{{ a }}{% for i in [1] %}{{ a }}{% endfor %}{% set a = 1 %}", json), "33");
  EXPECT_EQ(render("{% if i %}{% set a = 1 %}{% endif %}{{ a }}", json), "3")
      << "an assignment that may not happen";
  EXPECT_EQ(render("{% set a %}[{{ a }}]{% endset %}{{ a }}", json), "[]");
  EXPECT_EQ(render("{% macro f() %}{{ a }}{% endmacro %}{{ f() }}{% set a = 1 %}{{ f() }}", json), "1");
}

TEST(Template, Macros) {
  EXPECT_EQ(render("{% macro f(a, b='x', c=a) %}[{{ a }}{{ b }}{{ c }}{{ g }}]{% endmacro %}{% set g = 7 %}"
                   "{{ f(1) }}{{ f(2, c=3) }}{{ f() }}"),
            "[1x17][2x37][x7]");
  EXPECT_EQ(
      render(
          "{% macro count(n) %}{{ n }}{% if n %}{{ count(n - 1) }}{% endif %}{% endmacro %}{{ count(3) }}"),
      "3210");
  EXPECT_THAT(problem("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"), HasSubstr("at most 1 arguments"));
  EXPECT_THAT(problem("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}"), HasSubstr("no argument b"));
}

TEST(Template, Expressions) {
  EXPECT_EQ(expression("1 + 2 * 3 - 4 // 3 if true") + expression("'a' ~ 2 * 3 + 'b'"), "6a6b")
      << "~ binds closer than + and -";
  EXPECT_EQ(expression("7 / 2, -7 // 2, -7 % 3, 7.5 % -2, 2 ** 10, 2 ** -1"),
            "(3.5, -4, 2, -0.5, 1024, 0.5)");
  EXPECT_EQ(expression("1 < 2 < 3 and not 'a' in 'bc' or x"), "True");
  EXPECT_EQ(expression("[1, 'a\"b', none, true, 1.0, 1e16, 1e-5, {'k': (1,)}]"),
            "[1, 'a\"b', None, True, 1.0, 1e+16, 1e-05, {'k': (1,)}]");
  EXPECT_EQ(expression("\"it's\" ~ [\"it's\", '\\n\\t\\x01é\u200b']"),
            "it's[\"it's\", '\\n\\t\\x01é\\u200b']");
  EXPECT_EQ(expression("s[0] ~ s[-1] ~ s[1:3] ~ s[::-1] ~ s[9]", R"({"s": "aé帆z"})"), "azé帆z帆éa");
  EXPECT_EQ(expression("m.content ~ m['content'] ~ m.nothing ~ (m.items is defined) ~ m['items']",
                       R"({"m": {"content": "c", "items": 1}})"),
            "ccTrue1");
  EXPECT_EQ(expression("1 == 1.0, true == 1, 'a' == 'b', [1] == [1.0], missing == other, none == missing"),
            "(True, True, False, True, True, False)");
  EXPECT_EQ(
      expression(
          "x is defined, x is not none, 3 is divisibleby 3, 'a' is in ['a'], {} is mapping, () is sequence"),
      "(False, True, True, True, True, True)");
  EXPECT_EQ(expression("'a' 'b' ~ 0.5 ~ dict(a=1).a ~ range(1, 8, 3) | list"), "ab0.51[1, 4, 7]");
}

TEST(Template, FiltersAndMethods) {
  EXPECT_EQ(
      expression(
          "' a '|trim ~ 'ab'|upper ~ [3, 4]|length ~ 'x'|default('y') ~ z|default('y') ~ ''|d('e', true)"),
      "aAB2xye");
  EXPECT_EQ(expression("m|map(attribute='a')|join('-') ~ m|selectattr('a', 'gt', 1)|list|length ~ "
                       "m|map(attribute='q', default=7)|list",
                       R"({"m": [{"a": 1}, {"a": 2}]})"),
            "1-21[7, 7]");
  EXPECT_EQ(expression("'a b c'.split() ~ ' a  b'.split(' ') ~ 'a,b,c'.rsplit(',', 1) ~ 'xax'.strip('x')"),
            "['a', 'b', 'c']['', 'a', '', 'b']['a,b', 'c']a");
  EXPECT_EQ(expression("'ab'.startswith(('x', 'a')) ~ 'aXb'.replace('X', '-') ~ 'ß'.upper() ~ 'éa b'.title() "
                       "~ 'éA'|capitalize"),
            "Truea-bSSÉa BÉa");
  EXPECT_EQ(
      expression(
          "{'b': 1, 'A': 2}|dictsort ~ {'a': 1}.get('a') ~ {'a': 1}.get('b', 'n') ~ {'a': 1}|items|list"),
      "[('A', 2), ('b', 1)]1n[('a', 1)]");
  EXPECT_EQ(expression("'12'|int ~ '3.7'|int ~ 'x'|int(5) ~ '1.5'|float"), "12351.5");
  EXPECT_EQ(expression("[1, 2]|first ~ [1, 2]|last ~ 'ab'|list ~ 'ab'|reverse ~ 5|string|length"),
            "12['a', 'b']ba1");
  EXPECT_EQ(expression("(('a'|safe) + '<') ~ '<'"), "a&lt;<") << "+ escapes what is added to a safe text";
}

TEST(Template, JsonIsThatOfPython) {
  const std::string json = R"({"v": {"b": [1, 2.0, null, true, "é\"\n<\u007f"], "a": {}, "c": []}})";
  EXPECT_EQ(expression("v|tojson", json),
            "{\"b\": [1, 2.0, null, true, \"é\\\"\\n<\x7f\"], \"a\": {}, \"c\": []}");
  EXPECT_EQ(expression("v|tojson(ensure_ascii=true, separators=(',', ':'), sort_keys=true)", json),
            R"({"a":{},"b":[1,2.0,null,true,"\u00e9\"\n<\u007f"],"c":[]})");
  EXPECT_EQ(expression("{'a': [1, {}], 2: none}|tojson(indent=2)"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"2\": null\n}");
  EXPECT_THAT(problem("{{ x|tojson }}"), HasSubstr("JSON has no value that is not defined"));
}

TEST(Template, GenerationBlocksAreMarked) {
  const RenderedText rendered = render_all(
      "{% for m in ['a', 'bé'] %}<{% generation %}{{ m }}{% set m = 1 %}{% endgeneration %}>{{ m }}{% endfor "
      "%}"
      "{% generation %}{% endgeneration %}");
  EXPECT_EQ(rendered.text, "<a>a<bé>bé");
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(rendered.generated, (Ranges{{1, 2}, {5, 8}}));
}

TEST(Template, FunctionsOfTemplates) {
  EXPECT_EQ(expression("strftime_now('%d %b %Y')"), "26 Jul 2024");
  EXPECT_EQ(problem("a\n{{ raise_exception('Only ' ~ 'users') }}"), "t.jinja:2: Only users");
  EXPECT_THAT(problem("{% for i in range(100001) %}{% endfor %}"),
              HasSubstr("range() has more than 100000 values"));
}

TEST(Template, ErrorsNameTheLine) {
  EXPECT_EQ(problem("a\n\n{{ m.role.x }}", R"({"m": {}})"), "t.jinja:3: a dict has no role");
  EXPECT_EQ(problem("{{\n'a'\n+ 1 }}"), "t.jinja:2: + does not take a str and a int");
  EXPECT_EQ(problem("{% set x = missing + 'a' %}"), "t.jinja:1: missing is not defined");
  EXPECT_THAT(problem("{{ none | length }}"), HasSubstr("a None has no length"));
  EXPECT_THAT(problem("{% for a, b in [[1]] %}{% endfor %}"), HasSubstr("1 values are assigned to 2 names"));
}

TEST(Template, WhatIsNotSupportedIsRefusedWhenParsed) {
  const auto refused = [](const std::string& source, const std::string& message) {
    try {
      const Template parsed(source, "t.jinja");
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
      return;
    }
    ADD_FAILURE() << source << " was accepted";
  };
  refused("\n{% if false %}{{ x | urlize }}{% endif %}", "t.jinja:2: filter urlize is not supported");
  refused("{{ x is sameas y }}", "test sameas is not supported");
  refused("{{ x.format(1) }}", "method format() is not supported");
  refused("{{ cycler(1) }}", "cycler is not supported");
  refused("{{ f(1) }}", "function f() is not supported");
  refused("{% include 'x' %}", "tag include is not supported here");
  refused("{% for x in y recursive %}{% endfor %}", "recursive loops are not supported");
  refused("{{ loop.index }}", "loop is supported as loop.NAME in a for block");
  refused("{% for x in y %}{{ loop.changed(x) }}{% endfor %}", "loop.changed is not supported");
  refused("{% break %}", "break and continue are supported in a for block only");
  refused("{{ f(*x) }}", "arguments with * are not supported");
  refused("{{ x.__class__ }}", "attribute __class__ is not supported");
  refused("{{ x | map('urlize') }}", "filter urlize is not supported");
  refused("{{ x | trim(a=1) }}", "filter trim has no argument a");
  refused("{% macro f() %}{% generation %}{% endgeneration %}{% endmacro %}",
          "generation blocks are not supported in macros");
}

TEST(Template, BrokenTemplatesAreErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {"{{", "{{ is not closed by }}"},
      {"a\n{% if x", "t.jinja:2: {% is not closed by %}"},
      {"{% if x %}", "the template ends without endif"},
      {"{% endfor %}", "tag endfor is not supported here"},
      {"{{ 'a }}", "a text is not closed"},
      {"{{ 1 + }}", "unexpected }}"},
      {"{{ }}", "expected an expression"},
      {"{{ (1] }}", "unexpected ]"},
      {"{{ a b }}", "expected }}"},
      {"{{ $ }}", "unexpected character '$'"},
      {"{# a", "a comment is not closed"},
      {"{% raw %}a", "a raw block is not closed"},
      {"{% set 1 = 2 %}", "expected a name to assign to"},
      {"{{ 0x10 }}", "number 0x is not supported"},
      {"{{ 99999999999999999999 }}", "is not supported"},
      {"{{ '\\ud800' }}", "names no character"},
      {"{{ x[1:2:3:4] }}", "more than three parts"},
      {"{", "no error, but: {"},
  };
  for (const auto& [source, message] : cases) EXPECT_THAT(problem(source), HasSubstr(message)) << source;
}

TEST(Template, HostileTemplatesEnd) {
  const std::string endless =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(problem(endless), HasSubstr("takes too long or makes too much text"));
  EXPECT_THAT(
      problem(
          "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"),
      HasSubstr("takes too long"));
  EXPECT_THAT(
      problem(
          "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"),
      HasSubstr("takes too long"));
  EXPECT_THAT(
      problem("{% set ns = namespace(s=[]) %}{% for i in range(9999) %}{% set ns.s = [ns.s] %}{% endfor %}"),
      HasSubstr("values are nested more than 100 levels deep"));
  // Values that share their parts are small, and their texts and comparisons are not.
  const std::string tree =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  EXPECT_THAT(problem(tree + "{{ ns.a == ns.b }}"), HasSubstr("takes too long"));
  EXPECT_THAT(problem(tree + "{{ ns.a }}"), HasSubstr("takes too long"));
  EXPECT_THAT(problem("{{ 'ab' * 999999999 }}"), HasSubstr("takes too long"));
  EXPECT_THAT(problem("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("nest more than 800 levels deep"));
  EXPECT_THAT(problem("{{ 9223372036854775807 + 1 }}"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(problem("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns.self.self }}"),
              HasSubstr("has no text"));
}

TEST(Template, DeepNestingIsRefused) {
  const auto times = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  constexpr int kMany = 10'000;
  EXPECT_THAT(problem("{{ " + times("(", kMany) + "1" + times(")", kMany) + " }}"),
              HasSubstr("nest more than 200 levels deep"));
  EXPECT_THAT(problem("{{ " + times("[", kMany) + times("]", kMany) + " }}"),
              HasSubstr("nest more than 200 levels deep"));
  EXPECT_THAT(problem("{{ " + times("-", kMany) + "1 }}"), HasSubstr("too many signs"));
  EXPECT_THAT(problem("{{ " + times("not ", kMany) + "1 }}"), HasSubstr("more than 200 levels"));
  EXPECT_THAT(problem("{{ 1" + times(" + 1", kMany) + " }}"), HasSubstr("more than 200 levels"));
  EXPECT_THAT(problem("{{ x" + times(".a", kMany) + " }}"), HasSubstr("more than 200 levels"));
  EXPECT_THAT(problem("{{ x" + times("|trim", kMany) + " }}"), HasSubstr("more than 200 levels"));
  EXPECT_THAT(problem("{{ 1" + times(" if 1 else 1", kMany) + " }}"),
              HasSubstr("nest more than 200 levels deep"));
  EXPECT_THAT(problem(times("{% if 1 %}", kMany)), HasSubstr("blocks nest more than 200 levels deep"));
  EXPECT_THAT(problem("{% set " + times("(", kMany) + times(")", kMany) + " = 1 %}"),
              HasSubstr("expected a name to assign to"));
  EXPECT_EQ(render("{{ 1" + times(" ~ 1", 1000) + " }}").size(), 1001u);
  EXPECT_THAT(problem(times("{# comment #}", 50'000)), HasSubstr("is larger than 256 KiB"));
  std::string names;
  for (int i = 0; i < 501; ++i) names += "{% set a" + std::to_string(i) + " = 1 %}";
  EXPECT_THAT(problem(names), HasSubstr("the template has more than 500 names"));
  EXPECT_EQ(render("{% if 0 %}" + times("{% elif 0 %}", 1000) + "{% else %}x{% endif %}"), "x");
}

TEST(JsonValue, IsReadStrictly) {
  const auto broken = [](const std::string& json) -> std::string {
    try {
      parse_json_value(json);
    } catch (const TemplateError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(broken("[1"), HasSubstr("not valid JSON at byte 3"));
  EXPECT_THAT(broken("99999999999999999999"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(broken("9223372036854775808"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(broken(std::string(100000, '[')), HasSubstr("more than 100 levels deep"));
  EXPECT_EQ(expression("v ~ v.a", R"({"v": {"a": 1, "b": 2, "a": 3}})"), "{'a': 3, 'b': 2}3")
      << "the last of a key counts";
}

}  // namespace
}  // namespace sailor::jinja
