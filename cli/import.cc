#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/failure_text.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/progress.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"
#include "importer/import_bundle.h"

namespace clew::cli {
namespace {

using decoder::ImageMatch;

constexpr const char* kImportFooter =
    R"(Takes what `perf record -e intel_pt//` wrote, in file format or in pipe format
(`perf record -o -`, `perf inject`), and makes a bundle that `clew info` and
`clew decode` read anywhere. The programs and libraries that were mapped are
copied into it: from their recorded paths, or from the files and folders of
--images, wherever there is a file of the same build-id; one of another build is
refused by name. What is not found is listed, and is a gap when decoded.

Where the recording has no build-id of a file (a pipe of `perf record -o -` or
`perf inject`; a program linked without one), a file is taken by its path: from
--images the one whose path ends most like it, else that of this host. Such
files are listed as not verified: if another build ran, what they decode to is
wrong.

What `perf inject` wrote names the CPU of the host on which that ran: give the
recording one with --cpu, since errata go by it.

What perf records has no start state and no input log, and `clew solve` and
`clew replay` refuse a bundle without. If a recorder wrote them beside, as
start.pb and inputs.pb of `clew record` are, give both with --start and --inputs.

Exit codes:
  0  imported, with or without images missing
  2  the output exists, or an input is of the wrong kind
  3  a file cannot be read or written; there is no Intel PT in it
  4  perf.data or another input breaks its format

Examples:
  clew import perf.data -o run.clew
  clew import perf.data --core core.4711 -o crash.clew
  clew import perf.data --images ./bin --images ./sysroot -o run.clew
  clew import perf.data --start start.pb --inputs inputs.pb -o run.clew
  perf record -o - -e intel_pt//u ./server | clew import - -o run.clew
)";

struct ImportOptions {
  importer::ImportOptions import;
  bool json = false;
};

struct ImageCounts {
  uint64_t found = 0;
  uint64_t not_verified = 0;  // of them
  uint64_t missing = 0;
  uint64_t of_kernel = 0;  // of them
  uint64_t refused = 0;
};

ImageCounts CountImages(const importer::ImportReport& report) {
  ImageCounts counts;
  for (const ImageMatch& image : report.images) {
    ++(image.file.empty() ? counts.missing : counts.found);
    counts.not_verified += !image.file.empty() && !image.verified ? 1 : 0;
    counts.of_kernel += image.file.empty() && image.of_kernel ? 1 : 0;
    counts.refused += image.refused.size();
  }
  return counts;
}

// Copies of the vDSO were in files for the import alone.
Json FileJson(const ImageMatch& image, const std::string& core) {
  if (image.file.empty()) {
    return {};
  }
  if (image.path != kVdsoPath) {
    return image.file;
  }
  return image.from_core ? core : "this host";
}

Json ToJson(const ImageMatch& image, const std::string& core) {
  Json json;
  json["path"] = image.path;
  json["build_id"] = ToHex(image.build_id);
  json["file"] = FileJson(image, core);
  if (image.file.empty()) {
    json["why"] = image.why;
  } else {
    json["verified"] = image.verified;
  }
  json["refused"] = Json::array();
  for (const auto& refused : image.refused) {
    json["refused"].push_back({{"file", refused.file}, {"why", refused.why}});
  }
  return json;
}

Json ToJson(const ImportOptions& options,
            const importer::ImportReport& report) {
  const ImageCounts counts = CountImages(report);
  Json json;
  json["bundle"] = options.import.output;
  json["format"] = report.pipe_format ? "pipe" : "file";
  json["perf_data_bytes"] = report.perf_data_bytes;
  json["pt_bytes"] = report.pt_bytes;
  json["cores"] = report.manifest.core_count;
  json["streams"] = report.streams;
  json["slices"] = report.slices;
  json["host"] = report.manifest.origin.host;
  json["command"] = report.manifest.command;
  for (const decoder::RecordCount& record : report.records) {
    json["records"][record.name] = record.count;
  }
  json["images_found"] = counts.found;
  json["images_not_verified"] = counts.not_verified;
  json["images_missing"] = counts.missing;
  json["images_missing_of_kernel"] = counts.of_kernel;
  json["files_refused"] = counts.refused;
  json["images"] = Json::array();
  for (const ImageMatch& image : report.images) {
    json["images"].push_back(ToJson(image, options.import.core));
  }
  json["core"] = report.has_core;
  json["start_threads"] = report.start_threads;
  json["inputs"] = {{"calls", report.inputs.calls},
                    {"signals", report.inputs.signals},
                    {"instructions", report.inputs.instructions},
                    {"unknown", report.inputs.unknown}};
  json["failure"] = FailureJson(report.manifest.failure);
  json["loss"] = {{"aux_bytes", report.manifest.lost_aux_bytes},
                  {"records", report.manifest.lost_records}};
  json["warnings"] = report.warnings;
  return json;
}

std::string FailureOrNone(const Failure& failure, bool has_core) {
  if (failure.kind == FailureKind::kNone) {
    return has_core ? "none" : "not known; no core dump";
  }
  return FailureDetails(failure);
}

void PrintImage(const ImageMatch& image) {
  for (const auto& refused : image.refused) {
    fmt::print("  refused        {:?}: {}\n", refused.file, refused.why);
  }
  if (!image.file.empty() && !image.verified) {
    fmt::print("  not verified   {:?}: {:?}, by its path alone\n", image.path,
               image.file);
  }
  if (image.file.empty()) {
    fmt::print("  missing        {:?}, build-id {}: {}\n", image.path,
               image.build_id.empty() ? "unknown" : ToHex(image.build_id),
               image.why);
  }
}

void PrintText(const ImportOptions& options,
               const importer::ImportReport& report) {
  const ImageCounts counts = CountImages(report);
  fmt::print("{}: imported {}, {}B in {} format\n", options.import.output,
             options.import.perf_data,
             WithMagnitude(static_cast<double>(report.perf_data_bytes)),
             report.pipe_format ? "pipe" : "file");
  fmt::print("  Intel PT       {}B of {}, {} slices of threads\n",
             WithMagnitude(static_cast<double>(report.pt_bytes)),
             report.streams, report.slices);
  fmt::print("  failure        {}\n",
             FailureOrNone(report.manifest.failure, report.has_core));
  if (report.start_threads > 0) {
    fmt::print(
        "  start state    {} threads; since then {} calls, {} signals, {} "
        "instructions, {} unknown\n",
        report.start_threads, report.inputs.calls, report.inputs.signals,
        report.inputs.instructions, report.inputs.unknown);
  }
  fmt::print("  loss           {} AUX bytes, {} records\n",
             report.manifest.lost_aux_bytes, report.manifest.lost_records);
  fmt::print(
      "  images         {} found, {} of them not verified, {} missing, {} "
      "files "
      "refused\n",
      counts.found, counts.not_verified, counts.missing, counts.refused);
  for (const ImageMatch& image : report.images) {
    if (!image.of_kernel) {
      PrintImage(image);
    }
  }
  if (counts.of_kernel > 0) {
    fmt::print(
        "  kernel         {} of those missing are the kernel and its modules, "
        "which are not\n                 taken; user code decodes without\n",
        counts.of_kernel);
  }
}

int RunImport(const ImportOptions& options) {
  const auto report = [&] {
    TerminalProgress progress("import", "B");
    return importer::ImportBundle(PosixFileSystem(), options.import, &progress);
  }();
  if (!report) {
    return ReportError(report.error());
  }
  for (const std::string& warning : report->warnings) {
    Warn(warning);
  }
  if (options.json) {
    PrintJson(ToJson(options, *report));
  } else {
    PrintText(options, *report);
  }
  return kExitOk;
}

}  // namespace

void AddImport(Command& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  Command* command =
      app.add_subcommand("import", "make a bundle of Linux perf's perf.data");
  command
      ->add_option("perf_data", options->import.perf_data,
                   "file of `perf record -e intel_pt//`; - for standard input")
      ->required();
  command->add_option("-o,--output", options->import.output, "bundle to make")
      ->required();
  command->add_option("--core", options->import.core,
                      "core dump of the same run, plain or in zstd");
  command->add_option(
      "--start", options->import.start,
      "state at the first instruction, a start.pb; wants --inputs");
  command->add_option(
      "--inputs", options->import.inputs,
      "what came in from outside since then, an inputs.pb; wants --start");
  command
      ->add_option("--images", options->import.images,
                   "program or library, or folder below which to look for them")
      ->allow_extra_args(false);
  command->add_option("--cpu", options->import.cpu,
                      "CPU of the recording where the file names another, as "
                      "perf does: GenuineIntel,6,78,3");
  command->add_flag("--json", options->json, "report as JSON on stdout");
  command->footer(kImportFooter);
  command->callback([=, &exit_code] { exit_code = RunImport(*options); });
}

}  // namespace clew::cli
