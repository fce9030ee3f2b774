#ifndef CLEW_REPLAYER_GDB_FAILURE_WORDS_H_
#define CLEW_REPLAYER_GDB_FAILURE_WORDS_H_

#include <string>

#include "replayer/target.h"
#include "replayer/timeline.h"

namespace clew::replayer::gdb {

// Returns, for people, how the run ended and where in time the timeline is: two
// lines.
//
//   thread "bank" (tid 4713) failed: signal 11 (SIGSEGV), read of 0x10, where
//   nothing is mapped, by the instruction at 0x401136          [all one line]
//   position 127061 of 127061, the end
std::string DescribeFailure(const Timeline& timeline);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_FAILURE_WORDS_H_
