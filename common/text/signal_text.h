#ifndef CLEW_COMMON_TEXT_SIGNAL_TEXT_H_
#define CLEW_COMMON_TEXT_SIGNAL_TEXT_H_

#include <string>

namespace clew {

// "signal 6 (SIGABRT)"; "signal 35 (SIG?)" for one without a name.
std::string SignalText(int signal);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_SIGNAL_TEXT_H_
