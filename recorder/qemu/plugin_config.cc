#include "recorder/qemu/plugin_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInputsPrefix = "inputs.";

// Lines "key=value".
class Fields {
 public:
  static Result<Fields> Parse(std::string_view text) {
    Fields fields;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text = end == text.npos ? "" : text.substr(end + 1);
      const size_t equals = line.find('=');
      if (equals == line.npos) {
        return CorruptInput("line {:?} has no '='", std::string(line));
      }
      fields.values_.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    return fields;
  }

  Result<std::string> Text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) {
      return CorruptInput("no line {:?}", key);
    }
    return found->second;
  }

  // Reads a number into `to`.
  template <class T>
  Status Number(const std::string& key, T& to) const {
    CLEW_ASSIGN_OR_RETURN(text, Text(key));
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end) {
      return CorruptInput("{}: {:?} is no number", key, text);
    }
    to = static_cast<T>(value);
    return {};
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n') {
      c = ' ';
    }
  }
  return text;
}

// A line with their number, and one for each.
std::string FormatPhrases(std::string_view key,
                          const std::vector<std::string>& phrases) {
  std::string lines = fmt::format("{}={}\n", key, phrases.size());
  for (size_t i = 0; i < phrases.size(); ++i) {
    lines += fmt::format("{}{}={}\n", key, i, OneLine(phrases[i]));
  }
  return lines;
}

Status ParsePhrases(const Fields& fields, const std::string& key,
                    std::vector<std::string>& phrases) {
  uint64_t count = 0;
  CLEW_RETURN_IF_ERROR(fields.Number(key, count));
  for (uint64_t i = 0; i < count; ++i) {
    CLEW_ASSIGN_OR_RETURN(phrase, fields.Text(fmt::format("{}{}", key, i)));
    phrases.push_back(phrase);
  }
  return {};
}

}  // namespace

std::string FormatPluginConfig(const PluginConfig& s) {
  return fmt::format(
      "folder={}\ncores={}\nquantum={}\nslice_min={}\nslice_max={}\nseed={}\n"
      "psb={}\ntsc={:d}\nmtc={:d}\ncyc={:d}\nmtc_period={}\nnumerator={}\n"
      "denominator={}\nsize_limit={}\ntimeout={}\ncore_on_exit={:d}\n"
      "strict={:d}\nvirtual_tsc={:d}\n"
      "turns={}\nfail_rule={}\nfail_status={}\n",
      OneLine(s.folder), s.scheduler.cores, s.scheduler.quantum_insns,
      s.scheduler.slice_min_ticks, s.scheduler.slice_max_ticks,
      s.scheduler.seed, s.encoder.psb_period_bytes, s.encoder.tsc,
      s.encoder.mtc, s.encoder.cyc, s.encoder.mtc_period,
      s.encoder.tsc_ctc_numerator, s.encoder.tsc_ctc_denominator,
      s.size_limit_bytes, s.timeout_s, s.core_on_exit, s.strict, s.virtual_tsc,
      OneLine(s.turns_path), static_cast<int>(s.fail_on.rule),
      s.fail_on.status);
}

Result<PluginConfig> ParsePluginConfig(std::string_view text) {
  CLEW_ASSIGN_OR_RETURN(fields, Fields::Parse(text));
  PluginConfig s;
  CLEW_ASSIGN_OR_RETURN(folder, fields.Text("folder"));
  s.folder = folder;
  CLEW_RETURN_IF_ERROR(fields.Number("cores", s.scheduler.cores));
  CLEW_RETURN_IF_ERROR(fields.Number("quantum", s.scheduler.quantum_insns));
  CLEW_RETURN_IF_ERROR(fields.Number("slice_min", s.scheduler.slice_min_ticks));
  CLEW_RETURN_IF_ERROR(fields.Number("slice_max", s.scheduler.slice_max_ticks));
  CLEW_RETURN_IF_ERROR(fields.Number("seed", s.scheduler.seed));
  CLEW_RETURN_IF_ERROR(fields.Number("psb", s.encoder.psb_period_bytes));
  CLEW_RETURN_IF_ERROR(fields.Number("tsc", s.encoder.tsc));
  CLEW_RETURN_IF_ERROR(fields.Number("mtc", s.encoder.mtc));
  CLEW_RETURN_IF_ERROR(fields.Number("cyc", s.encoder.cyc));
  CLEW_RETURN_IF_ERROR(fields.Number("mtc_period", s.encoder.mtc_period));
  CLEW_RETURN_IF_ERROR(fields.Number("numerator", s.encoder.tsc_ctc_numerator));
  CLEW_RETURN_IF_ERROR(
      fields.Number("denominator", s.encoder.tsc_ctc_denominator));
  CLEW_RETURN_IF_ERROR(fields.Number("size_limit", s.size_limit_bytes));
  CLEW_RETURN_IF_ERROR(fields.Number("timeout", s.timeout_s));
  CLEW_RETURN_IF_ERROR(fields.Number("core_on_exit", s.core_on_exit));
  CLEW_RETURN_IF_ERROR(fields.Number("strict", s.strict));
  CLEW_RETURN_IF_ERROR(fields.Number("virtual_tsc", s.virtual_tsc));
  CLEW_RETURN_IF_ERROR(fields.Number("fail_rule", s.fail_on.rule));
  CLEW_RETURN_IF_ERROR(fields.Number("fail_status", s.fail_on.status));
  CLEW_ASSIGN_OR_RETURN(turns, fields.Text("turns"));
  s.turns_path = turns;
  CLEW_RETURN_IF_ERROR(Validate(s.encoder));
  return s;
}

std::string RawFolder(const std::string& folder) { return folder + "/raw"; }
std::string RawPtPath(const std::string& folder, uint32_t core) {
  return fmt::format("{}/raw/pt.{}", folder, core);
}
std::string RawInputsPath(const std::string& folder, Tid thread) {
  return fmt::format("{}/{}{}", RawFolder(folder), kInputsPrefix, thread);
}
Result<std::vector<std::string>> FindRawInputs(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator entry(RawFolder(folder), error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kInputsPrefix)) {
      paths.push_back(entry->path().string());
    }
  }
  if (error) {
    return SystemError(error.value(),
                       fmt::format("cannot list {:?}", RawFolder(folder)));
  }
  std::ranges::sort(paths);
  return paths;
}
Status RemoveRawInputs(const std::string& folder) {
  CLEW_ASSIGN_OR_RETURN(paths, FindRawInputs(folder));
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::remove(path, error)) {
      return SystemError(error.value(),
                         fmt::format("cannot remove {:?}", path));
    }
  }
  return {};
}
std::string RawEventsPath(const std::string& folder) {
  return folder + "/raw/events";
}
std::string RawCodePath(const std::string& folder) {
  return folder + "/raw/code";
}
std::string CodeListPath(const std::string& folder) {
  return folder + "/raw/code_list";
}
std::string OutcomePath(const std::string& folder) {
  return folder + "/raw/outcome";
}
std::string StartPath(const std::string& folder) {
  return folder + "/start.pb";
}
std::string InputsPath(const std::string& folder) {
  return folder + "/inputs.pb";
}
std::string CorePath(const std::string& folder) { return folder + "/core"; }

std::string FormatOutcome(const Outcome& o) {
  return FormatPhrases("unlogged", o.unlogged_inputs) +
         FormatPhrases("deviation", o.deviations) +
         fmt::format(
             "kind={}\nsignal={}\nstatus={}\nthread={}\nip={}\naddr={}\n"
             "refusal={}\ndropped={}\nhas_core={:d}\ninsns={}\ncores={}"
             "\nhandovers={}"
             "\nswitches={}\nring_halves={}\nring_stopped_us={}\n"
             "ring_stopped_us_max={}\n"
             "inputs_unknown={}\nended_ns={}\nregisters_exact={:d}\nend=1\n",
             static_cast<int>(o.failure.kind), o.failure.signal,
             o.failure.exit_status, o.failure.thread, o.failure.ip,
             o.failure.addr, OneLine(o.refusal), OneLine(o.dropped), o.has_core,
             o.insns, o.cores, o.handovers, o.switches, o.ring.halves,
             o.ring.stopped_us, o.ring.stopped_us_max, o.inputs_unknown,
             o.ended_ns, o.registers_exact);
}

Result<Outcome> ParseOutcome(std::string_view text) {
  CLEW_ASSIGN_OR_RETURN(fields, Fields::Parse(text));
  Outcome o;
  uint64_t value = 0;
  CLEW_RETURN_IF_ERROR(fields.Number("kind", value));
  if (value > static_cast<uint64_t>(FailureKind::kTimeLimit)) {
    return CorruptInput("kind is {}, at most {} is known", value,
                        static_cast<int>(FailureKind::kTimeLimit));
  }
  o.failure.kind = static_cast<FailureKind>(value);
  CLEW_RETURN_IF_ERROR(fields.Number("signal", o.failure.signal));
  CLEW_RETURN_IF_ERROR(fields.Number("status", o.failure.exit_status));
  CLEW_RETURN_IF_ERROR(fields.Number("thread", value));
  o.failure.thread = Tid(static_cast<int32_t>(value));
  CLEW_RETURN_IF_ERROR(fields.Number("ip", value));
  o.failure.ip = TraceeAddr(value);
  CLEW_RETURN_IF_ERROR(fields.Number("addr", value));
  o.failure.addr = TraceeAddr(value);
  CLEW_ASSIGN_OR_RETURN(refusal, fields.Text("refusal"));
  o.refusal = refusal;
  CLEW_ASSIGN_OR_RETURN(dropped, fields.Text("dropped"));
  o.dropped = dropped;
  CLEW_RETURN_IF_ERROR(fields.Number("has_core", o.has_core));
  CLEW_RETURN_IF_ERROR(fields.Number("insns", o.insns));
  CLEW_RETURN_IF_ERROR(fields.Number("cores", o.cores));
  CLEW_RETURN_IF_ERROR(fields.Number("handovers", o.handovers));
  CLEW_RETURN_IF_ERROR(fields.Number("switches", o.switches));
  CLEW_RETURN_IF_ERROR(fields.Number("ring_halves", o.ring.halves));
  CLEW_RETURN_IF_ERROR(fields.Number("ring_stopped_us", o.ring.stopped_us));
  CLEW_RETURN_IF_ERROR(
      fields.Number("ring_stopped_us_max", o.ring.stopped_us_max));
  CLEW_RETURN_IF_ERROR(fields.Number("inputs_unknown", o.inputs_unknown));
  CLEW_RETURN_IF_ERROR(fields.Number("ended_ns", o.ended_ns));
  CLEW_RETURN_IF_ERROR(fields.Number("registers_exact", o.registers_exact));
  CLEW_RETURN_IF_ERROR(ParsePhrases(fields, "unlogged", o.unlogged_inputs));
  CLEW_RETURN_IF_ERROR(ParsePhrases(fields, "deviation", o.deviations));
  CLEW_RETURN_IF_ERROR(fields.Number("end", value));
  return o;
}

}  // namespace clew::recorder
