#ifndef CLEW_RECORDER_SOFTWARE_REPEAT_H_
#define CLEW_RECORDER_SOFTWARE_REPEAT_H_

#include <string>

#include "bundle/manifest/manifest.h"
#include "common/result.h"
#include "recorder/software/record.h"

// A recorded run once more, wherever and by whomever it is asked for. What the
// bundle does not carry is not brought back: contents of files, standard input,
// open descriptors, whether output is a terminal, the time of day.

namespace clew::recorder {

// Where and with what this process would start the program `name`, which is
// searched for in PATH. kInvalidArgument: it is not there.
[[nodiscard]] Result<bundle::Surroundings> OwnSurroundings(
    const std::string& name);

// What a bundle carries of `options`. REQUIRES: it has surroundings.
bundle::RunSettings SettingsOf(const RecordOptions& options);

// Returns options that start the run of `manifest` again; output, plugin_path
// and can_replay are left to the caller. Fails with kUnsupported if the
// manifest has no settings, with kCorruptInput if they make no sense. `where`
// names the bundle.
[[nodiscard]] Result<RecordOptions> OptionsToRepeat(
    const bundle::Manifest& manifest, const std::string& where);

// True if both runs ended in the same way at the same instruction.
bool SameEnd(const Failure& a, const Failure& b);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_REPEAT_H_
