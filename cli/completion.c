/*
 * `sherd completion bash`: a completion script made from the verb table, so that it is always up to
 * date.
 *
 * The script is plain bash without the bash-completion package: one case per verb with its options,
 * and one case per option that takes a value (files, folders, choices).
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

static const char *const shells[] = { "bash", NULL };

static void put_verbs(const sherd__verb *const *list)
{
    for (const char *space = ""; *list; list++) {
        if ((*list)->hidden) continue;
        printf("%s%s", space, (*list)->name);
        space = " ";
    }
}

static bool put_options(void *ctx, const sherd__verb *v, const char *title)
{
    (void)ctx;
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    if (v->hidden) return false;
    printf("    '%s') words='", title);
    for (size_t i = 0; i < len; i++)
        if ((list[i]->flags & SHERD__OPT_HIDDEN) == 0)
            printf("%s--%s", i > 0 ? " " : "", list[i]->name);
    puts("' ;;");
    return false;
}

static bool put_values(void *ctx, const sherd__verb *v, const char *title)
{
    (void)ctx;
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    for (size_t i = 0; i < len; i++) {
        const sherd__option *o = list[i];
        if (!o->arg) continue;
        printf("    '%s:--%s'", title, o->name);
        if (o->letter != 0) printf(" | '%s:-%c'", title, o->letter);
        if (o->type == SHERD__CHOICE) {
            fputs(") words='", stdout);
            const char *const *choices = sherd__option_choices(o);
            for (const char *const *c = choices; *c; c++)
                printf("%s%s", c > choices ? " " : "", *c);
            puts("'; value=1 ;;");
        } else if (o->type == SHERD__FILE || o->type == SHERD__DIR) {
            printf(") IFS=$'\\n'; COMPREPLY=($(compgen -%c -- \"$cur\")); return ;;\n",
                   o->type == SHERD__FILE ? 'f' : 'd');
        } else {
            puts(") return ;;");
        }
    }
    return false;
}

static void put_bash(void)
{
    fputs("# bash completion for sherd; load with: source <(sherd completion bash)\n"
          "_sherd() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local verb=${COMP_WORDS[1]} words='' value='' IFS=$' \\t\\n'\n"
          "    COMPREPLY=()\n"
          "    if [ \"$cur\" = = ]; then\n" /* bash makes = a word of its own */
          "        cur=''\n"
          "    elif [ \"$prev\" = = ]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    put_verbs(sherd__verbs);
    puts("' -- \"$cur\"))\n        return\n    fi");
    for (const sherd__verb *const *v = sherd__verbs; *v; v++) {
        if (!(*v)->subs) continue;
        printf("    if [ \"$verb\" = %s ]; then\n"
               "        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
               "            COMPREPLY=($(compgen -W '",
               (*v)->name);
        put_verbs((*v)->subs);
        puts("' -- \"$cur\"))\n            return\n        fi\n"
             "        verb=\"$verb ${COMP_WORDS[2]}\"\n    fi");
    }
    puts("    case \"$verb:$prev\" in");
    sherd__verbs_each(put_values, NULL);
    puts("    esac\n    [ -n \"$value\" ] || case \"$verb\" in");
    fputs("    help) words='", stdout);
    put_verbs(sherd__verbs);
    puts("' ;;");
    sherd__verbs_each(put_options, NULL);
    puts("    esac\n"
         "    if [ -n \"$value\" ] || [ \"$verb\" = help ] || [ \"${cur#-}\" != \"$cur\" ]; then\n"
         "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "    else\n"
         "        IFS=$'\\n'\n" /* names of files may contain spaces */
         "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _sherd sherd");
}

static int run_completion(sherd__cli *cli, sherd_diag *d)
{
    if (strcmp(cli->args[0], shells[0]) != 0)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "sherd completion bash",
                           "expected bash, found '%.60s'", cli->args[0]);
    put_bash();
    return 0;
}

static const sherd__example examples[] = {
    { "source <(sherd completion bash)", "completion in this shell" },
    { "sherd completion bash >~/.local/share/bash-completion/completions/sherd",
      "completion in every new shell, if the bash-completion package is installed" },
    { "sherd completion bash | less", "shows the script" },
    { 0 },
};

const sherd__verb sherd__verb_completion = {
    .name = "completion",
    .usage = "bash",
    .summary = "print shell completion",
    .examples = examples,
    .args_min = 1,
    .args_max = 1,
    .run = run_completion,
    .text = true,
};
