#ifndef CLEW_RECORDER_SOFTWARE_PLUGIN_FILE_H_
#define CLEW_RECORDER_SOFTWARE_PLUGIN_FILE_H_

#include <string>
#include <vector>

#include "common/result.h"

namespace clew::recorder {

// Places where the QEMU plugin may be, best first: $CLEW_PLUGIN alone if set,
// else beside this program and in ../lib/clew/.
std::vector<std::string> PluginPlaces();

// The absolute path of the first of them that can be read.
// kUnsupported, naming the places: none.
[[nodiscard]] Result<std::string> FindPlugin();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_PLUGIN_FILE_H_
