/* The verbs in the order of help, one line each. Add a line for each new verb file. */
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
