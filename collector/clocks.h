#ifndef CLEW_COLLECTOR_CLOCKS_H_
#define CLEW_COLLECTOR_CLOCKS_H_

#include <cstdint>

namespace clew::collector {

// Seconds since 1970, as an administrator may set them.
int64_t Wall_s();
// Seconds since the machine started, asleep or not; never goes back.
uint64_t Steady_s();

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CLOCKS_H_
