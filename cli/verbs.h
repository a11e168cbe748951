/* The verbs, in the order in which help lists them. One line each: add yours when its file
 * exists. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#define SHERD__VERBS(XX)                                                                           \
    XX(demo)                                                                                       \
    XX(multiply)                                                                                   \
    XX(plan)                                                                                       \
    XX(apply)                                                                                      \
    XX(train)                                                                                      \
    XX(predict)                                                                                    \
    XX(fetch)                                                                                      \
    XX(prepare)                                                                                    \
    XX(node)                                                                                       \
    XX(cluster)                                                                                    \
    XX(meta)                                                                                       \
    XX(verify)                                                                                     \
    XX(audit)                                                                                      \
    XX(bench)                                                                                      \
    XX(keygen)                                                                                     \
    XX(doctor)                                                                                     \
    XX(version)                                                                                    \
    XX(help)                                                                                       \
    XX(completion)

#endif
