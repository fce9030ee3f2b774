#ifndef CLEW_BENCH_NATIVE_SUBJECTS_H_
#define CLEW_BENCH_NATIVE_SUBJECTS_H_

#include <string>
#include <vector>

#include "bench/native_load.h"

namespace clew::bench {

// In commands, SOCKET and INPUT stand for paths.
struct Subject {
  const char* name;
  std::vector<std::string> command;
  Request request = {};  // without a text: it works by itself
  int clients = 4;
};

// The programs of each suite of bench_native.
const std::vector<Subject>& Attached();
const std::vector<Subject>& Real();
// What ends within a minute though each instruction is a stop.
const std::vector<Subject>& Launched();
// What fails with one seed or another: the programs that the first recordings
// under QEMU were of, and those that use vectors of 256 and 512 bits.
const std::vector<Subject>& Failing();

}  // namespace clew::bench

#endif  // CLEW_BENCH_NATIVE_SUBJECTS_H_
