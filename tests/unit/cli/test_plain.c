/* Text of files and peers on a terminal: characters that it obeys are escaped, others are kept. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void assert_shown(const char *text, const char *want)
{
    char out[256];
    assert_string_equal(sherd__cli_plain(text, out, sizeof out), want);
}

static void ordinary_text_is_kept(void **s)
{
    (void)s;
    static const char *const kept[] = {
        "",
        "node-3: 5 %\\x",
        "Zürich, 東京, 😀",
        "\u00a0 \u00bf \u0600 \u200d \u2010 \u2027 \u202f \u2070 ퟿ \ue000 \U0010ffff",
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) assert_shown(kept[i], kept[i]);
}

static void characters_that_a_terminal_obeys_are_escaped(void **s)
{
    (void)s;
    assert_shown("a\033[31mb\nc\td\re\177", "a\\x1b[31mb\\x0ac\\x09d\\x0de\\x7f");
    assert_shown("\xc2\x80 \xc2\x9b"
                 "0m",
                 "\\x80 \\x9b0m");
    static const char *const formats[][2] = {
        { "\u061c", "\\u061c" }, { "\u200e", "\\u200e" },      { "\u200f", "\\u200f" },
        { "\u2028", "\\u2028" }, { "\u2029", "\\u2029" },      { "\u202a", "\\u202a" },
        { "\u202b", "\\u202b" }, { "\u202c", "\\u202c" },      { "\u202d", "\\u202d" },
        { "\u202e", "\\u202e" }, { "\u2066", "\\u2066" },      { "\u2067", "\\u2067" },
        { "\u2068", "\\u2068" }, { "\u2069", "\\u2069" },      { "\u206f", "\\u206f" },
        { "\ufeff", "\\ufeff" }, { "\U000e0041", "\\ue0041" },
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        assert_shown(formats[i][0], formats[i][1]);
}

/* A terminal in Latin-1 obeys 0x9b alone. */
static void bytes_that_are_not_utf8_are_escaped(void **s)
{
    (void)s;
    static const char *const bad[][2] = {
        { "\x9b"
          "0m",
          "\\x9b0m" },
        { "caf\xe9", "caf\\xe9" },
        { "\xc3", "\\xc3" },
        { "\xe2\x80", "\\xe2\\x80" },
        { "\xc0\x9b", "\\xc0\\x9b" },                   /* overlong */
        { "\xe0\x80\x9b", "\\xe0\\x80\\x9b" },          /* overlong */
        { "\xf0\x82\x80\xae", "\\xf0\\x82\\x80\\xae" }, /* overlong U+202E */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* a surrogate */
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* beyond U+10FFFF */
        { "\xff\xfe", "\\xff\\xfe" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_shown(bad[i][0], bad[i][1]);
}

/* As in messages; controls are escaped as JSON escapes them. */
static void json_keeps_characters_and_escapes_other_bytes(void **s)
{
    (void)s;
    json_t *whole = sherd__cli_json_text("caf\u00e9\n"),
           *mixed = sherd__cli_json_text("\u20ac\xff.");
    assert_string_equal(json_string_value(whole), "caf\u00e9\n");
    assert_string_equal(json_string_value(mixed), "\u20ac\\xff.");
    json_decref(whole);
    json_decref(mixed);
}

static void a_character_is_never_cut(void **s)
{
    (void)s;
    char out[6];
    assert_string_equal(sherd__cli_plain("abcd\u20ac", out, sizeof out), "abcd");
    assert_string_equal(sherd__cli_plain("ab\u20ac", out, sizeof out), "ab\u20ac");
    assert_string_equal(sherd__cli_plain("ab\033", out, sizeof out), "ab");
    assert_string_equal(sherd__cli_plain("abcdefgh", out, sizeof out), "abcde");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_text_is_kept),
        cmocka_unit_test(characters_that_a_terminal_obeys_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_are_escaped),
        cmocka_unit_test(json_keeps_characters_and_escapes_other_bytes),
        cmocka_unit_test(a_character_is_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
