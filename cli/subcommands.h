#ifndef CLEW_CLI_SUBCOMMANDS_H_
#define CLEW_CLI_SUBCOMMANDS_H_

#include <CLI/CLI.hpp>

// Each adds one subcommand with its options to `app`, in the file of the same
// name. When it has been chosen, its callback sets `exit_code` (common/result.h
// has the codes), which must outlive `app`.

namespace clew::cli {

void AddRecord(CLI::App& app, int& exit_code);
void AddImport(CLI::App& app, int& exit_code);
void AddInfo(CLI::App& app, int& exit_code);
void AddDecode(CLI::App& app, int& exit_code);
void AddSolve(CLI::App& app, int& exit_code);
void AddReplay(CLI::App& app, int& exit_code);
void AddBacktrace(CLI::App& app, int& exit_code);
void AddCheck(CLI::App& app, int& exit_code);
void AddUpload(CLI::App& app, int& exit_code);
void AddList(CLI::App& app, int& exit_code);
void AddGet(CLI::App& app, int& exit_code);
void AddSnapshot(CLI::App& app, int& exit_code);
void AddDaemon(CLI::App& app, int& exit_code);
void AddDoctor(CLI::App& app, int& exit_code);
void AddVersion(CLI::App& app, int& exit_code);

}  // namespace clew::cli

#endif  // CLEW_CLI_SUBCOMMANDS_H_
