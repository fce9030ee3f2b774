#ifndef CLEW_CLI_SUBCOMMANDS_H_
#define CLEW_CLI_SUBCOMMANDS_H_

#include "cli/command.h"

// Each adds one subcommand with its options to `app`, in the file of the same
// name. When it has been chosen, its callback sets `exit_code` (common/result.h
// has the codes), which must outlive `app`.

namespace clew::cli {

void AddRecord(Command& app, int& exit_code);
void AddImport(Command& app, int& exit_code);
void AddInfo(Command& app, int& exit_code);
void AddDecode(Command& app, int& exit_code);
void AddSolve(Command& app, int& exit_code);
void AddReportBug(Command& app, int& exit_code);
void AddReplay(Command& app, int& exit_code);
void AddBacktrace(Command& app, int& exit_code);
void AddCheck(Command& app, int& exit_code);
void AddUpload(Command& app, int& exit_code);
void AddList(Command& app, int& exit_code);
void AddGet(Command& app, int& exit_code);
void AddGroup(Command& app, int& exit_code);
void AddHosts(Command& app, int& exit_code);
void AddDelete(Command& app, int& exit_code);
void AddScrub(Command& app, int& exit_code);
void AddSnapshot(Command& app, int& exit_code);
void AddDaemon(Command& app, int& exit_code);
void AddDoctor(Command& app, int& exit_code);
void AddVersion(Command& app, int& exit_code);

}  // namespace clew::cli

#endif  // CLEW_CLI_SUBCOMMANDS_H_
