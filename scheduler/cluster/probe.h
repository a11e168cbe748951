/* How a probe of links grows (sherd_forecast_probe). */
#ifndef SCHEDULER_CLUSTER_PROBE_H
#define SCHEDULER_CLUSTER_PROBE_H

#include <stdint.h>

/** Returns how many bytes per node and direction the next pair of products transfers, at most
 *  `most`, after one of `bytes` that took `seconds` in addition to the latency; 0 if that one was
 *  accurate enough, or was the largest. */
uint64_t sherd__probe_next(uint64_t bytes, double seconds, uint64_t most);

#endif
