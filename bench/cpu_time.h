#ifndef CLEW_BENCH_CPU_TIME_H_
#define CLEW_BENCH_CPU_TIME_H_

#include <sys/resource.h>
#include <sys/time.h>

namespace clew {

inline double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) / 1e6;
}

inline double CpuSeconds(const rusage& usage) {
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// Processor time of this process and its children that have ended.
inline double CpuSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(who, &usage);
    seconds += CpuSeconds(usage);
  }
  return seconds;
}

}  // namespace clew

#endif  // CLEW_BENCH_CPU_TIME_H_
