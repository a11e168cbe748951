# Checks names of the C sources, which it reads as comments.awk -v code=1 prints them, public headers among them:
# a public header has no name of the library (sherd__*), no other file has a public name (sherd_*) that is in no public
# header, and no type is defined in two files. Prints each violation and fails if there is one.
function breach(what) { print what; bad = 1 }
function defines(type) {
    if (type !~ /^sherd_/ || type == "sherd_kept") return # each multiplier has its own sherd_kept
    if (!(type in home)) home[type] = file
    else if (home[type] != file) breach(file ": type " type " is also defined in " home[type])
}
# A whole typedef on one line. `typedef struct X X;` declares only.
function typedef_of(text,    whole, n, word) {
    whole = !sub(/\{.*\}/, " ", text)
    if (text ~ /\( *\*/) { sub(/\).*/, "", text); sub(/.*\(/, "", text) } # a pointer to a function
    else sub(/\(.*/, "", text)
    gsub(/\[[^]]*\]|[;*]/, " ", text)
    n = split(text, word, " ")
    if (!(whole && n == 4 && word[3] == word[4])) defines(word[n])
}
{
    file = $0; sub(/:.*/, "", file)
    sub(/^[^:]*:[0-9]*:/, "")
    if (file != previous) { type = ""; depth = 0; previous = file }
    for (rest = $0; match(rest, /[A-Za-z0-9_]+/); rest = substr(rest, RSTART + RLENGTH)) {
        word = substr(rest, RSTART, RLENGTH)
        if (word !~ /^sherd_./) continue
        if (file ~ /^include\//) {
            if (word ~ /^sherd__/) breach(file ": has " word ", a name of the library")
            public[word]
        } else if (word !~ /^sherd_(_|pb_)/ && !(word in used)) used[word] = file
    }
    if (match($0, /(struct|union|enum) +[A-Za-z0-9_]+ *\{/)) {
        word = substr($0, RSTART, RLENGTH)
        sub(/ *\{$/, "", word); sub(/.* /, "", word)
        defines(word)
    }
    if (/^ *typedef /) type = " "
    if (type == "") next
    type = type " " $0
    depth += gsub(/\{/, "{") - gsub(/\}/, "}")
    if (depth == 0 && /;[ \t]*$/) { typedef_of(type); type = "" }
}
END {
    for (word in used)
        if (!(word in public)) breach(used[word] ": " word " is in no public header: names of the library begin with sherd__")
    exit bad
}
