#ifndef CLEW_RECORDER_SOFTWARE_LEAK_SANITIZER_H_
#define CLEW_RECORDER_SOFTWARE_LEAK_SANITIZER_H_

#include "bundle/manifest/manifest.h"

namespace clew::recorder {

// Tells a program that looks for leaks as it ends (LeakSanitizer, which
// AddressSanitizer has in it) not to, by its environment. Returns whether it
// did: it is such a program, or has such a library preloaded, and was not told
// so before. For that look a program traces its own threads, which it cannot
// where they are traced already: it would fail instead.
bool TurnLeakSanitizerOff(bundle::Surroundings& surroundings);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_LEAK_SANITIZER_H_
