#include "recorder/redaction/redaction.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "bundle/core_dump/dump_rewriter.h"
#include "bundle/manifest/manifest_edit.h"
#include "bundle/manifest/message.h"
#include "bundle/manifest/whole_file.h"
#include "common/os/file.h"
#include "common/os/patch.h"
#include "common/x86/page.h"
#include "proto/bundle.pb.h"
#include "recorder/redaction/memory_view.h"

namespace clew::recorder {
namespace {

using bundle::DumpRewriter;
using bundle::EditManifest;
using bundle::ManifestEdits;
using bundle::ReadMessage;
using bundle::ReplaceMessage;
using bundle::RewrittenSegment;

constexpr char kFill = 'x';
constexpr size_t kNamesMax = 20;  // that a line lists
constexpr int kRspIndex = 4;      // in Start.gpr

// A value that is taken out, and where the kernel put it (0: not known).
struct Value {
  uint64_t addr = 0;
  std::string text;
};

bool IsFilled(const std::string& text) {
  return text.find_first_not_of(kFill) == std::string::npos;
}

// "a, b, c", at most kNamesMax of them; quoted, as they may be anything.
std::string Listed(const std::set<std::string>& names) {
  std::string text;
  size_t count = 0;
  for (const std::string& name : names) {
    if (++count > kNamesMax) {
      return text + ", ...";
    }
    text += fmt::format("{}{:?}", text.empty() ? "" : ", ", name);
  }
  return text;
}

MemoryView MemoryOf(const DumpRewriter& core) {
  std::vector<MemoryPart> parts;
  for (const RewrittenSegment& segment : core.segments()) {
    parts.push_back({.addr = segment.header.p_vaddr,
                     .bytes = core.BytesOf(segment),
                     .writable = (segment.header.p_flags & PF_W) != 0});
  }
  return MemoryView(std::move(parts));
}

class Redaction {
 public:
  Redaction(FileSystem& files, const std::string& folder,
            const RedactionRules& rules)
      : files_(files), folder_(folder), rules_(rules) {}

  Result<std::vector<std::string>> Run() {
    CLEW_RETURN_IF_ERROR(Open());
    CLEW_RETURN_IF_ERROR(FindValues());
    CLEW_RETURN_IF_ERROR(ChooseSegments());
    CLEW_RETURN_IF_ERROR(PlanCore());
    CLEW_RETURN_IF_ERROR(PlanStart());
    CLEW_RETURN_IF_ERROR(PlanPlain(inputs_));
    CLEW_RETURN_IF_ERROR(PlanPlain(perf_data_));
    SayRemoved();
    SayValues();
    // What the manifest says and is not done yet is done by the next call; what
    // is done and not in the manifest would stay unknown. The command line is
    // where that call finds the values again.
    CLEW_RETURN_IF_ERROR(EditRedactions());
    CLEW_RETURN_IF_ERROR(Apply());
    CLEW_RETURN_IF_ERROR(
        command_ ? EditManifest(files_, folder_, {.command = command_})
                 : Status());
    return lines_;
  }

 private:
  std::string Path(const char* name) const { return folder_ + "/" + name; }

  Status Open() {
    if (Exists(Path("schedule.pb"))) {
      return InvalidArgument(
          "{}: it is solved; its schedule belongs to the recording as it is",
          folder_);
    }
    if (Exists(Path("core.zst"))) {
      return Unsupported(
          "{}: a compressed dump cannot be redacted; unpack it first (unzstd "
          "--rm)",
          Path("core.zst"));
    }
    CLEW_RETURN_IF_ERROR(ReadMessage(Path("manifest.pb"), manifest_));
    if (Exists(Path("core"))) {
      CLEW_ASSIGN_OR_RETURN(core, DumpRewriter::Open(Path("core")));
      core_.emplace(std::move(core));
    }
    if (Exists(Path("start.pb"))) {
      start_ = std::make_unique<pb::Start>();
      CLEW_RETURN_IF_ERROR(ReadMessage(Path("start.pb"), *start_));
    }
    return {};
  }

  MemoryView StartMemory() const {
    std::vector<MemoryPart> parts;
    for (const pb::Segment& segment : start_->segments()) {
      parts.push_back({.addr = segment.addr(),
                       .bytes = std::as_bytes(std::span(segment.data())),
                       .writable = (segment.prot() & 2) != 0});
    }
    return MemoryView(std::move(parts));
  }

  // What is to be overwritten: variables and arguments of the process, as the
  // start state and the core dump have them, and the manifest's command.
  Status FindValues() {
    AddCommandValues();
    if (!rules_.has_environment_rules() && !rules_.has_argument_rules()) {
      return {};
    }
    if (start_ != nullptr && start_->gpr_size() > kRspIndex) {
      CLEW_ASSIGN_OR_RETURN(
          stack, ReadStackStrings(StartMemory(), start_->initial_stack() != 0
                                                     ? start_->initial_stack()
                                                     : start_->gpr(kRspIndex)));
      AddStackValues(stack);
    }
    if (core_) {
      auto stack = FindStackStrings(MemoryOf(*core_), core_->auxv());
      if (!stack && start_ == nullptr &&
          !rules_.DropsSegment(SegmentKind::kStack, "")) {
        return Unsupported(
            "{}: rules for environment and arguments cannot be applied: {}; "
            "drop [stack], or the whole dump",
            Path("core"), stack.error().message);
      }
      if (stack) {
        AddStackValues(*stack);
      }
    }
    return {};
  }

  void AddStackValues(const StackStrings& stack) {
    for (const StackString& entry : stack.environment) {
      const size_t equals = entry.text.find('=');
      const std::string name = entry.text.substr(0, equals);
      if (equals != std::string::npos && rules_.DropsVariable(name) &&
          AddValue(entry.addr, entry.text, equals + 1)) {
        variables_.insert(name);
      }
    }
    std::vector<std::string> words;
    words.reserve(stack.arguments.size());
    for (const StackString& word : stack.arguments) {
      words.push_back(word.text);
    }
    for (const auto& [index, from, pattern] : rules_.DroppedIn(words)) {
      AddValue(stack.arguments[index].addr, words[index], from);
      options_.insert(pattern);
    }
  }

  void AddCommandValues() {
    std::vector<std::string> words(manifest_.command().begin(),
                                   manifest_.command().end());
    const std::vector<std::string> before = words;
    for (const auto& [index, from, pattern] : rules_.DroppedIn(before)) {
      AddValue(0, before[index], from);
      words[index].replace(from, std::string::npos, words[index].size() - from,
                           kFill);
      options_.insert(pattern);
    }
    if (words != before) {
      command_ = words;
    }
  }

  // Messages of the journal: options and names in their words, and values that
  // were found elsewhere.
  Journal RedactedJournal() const {
    Journal journal{.lines = {}, .why = manifest_.no_journal()};
    for (const pb::JournalLine& line : manifest_.journal()) {
      journal.lines.push_back({.at_us = line.at_us(),
                               .process = line.process(),
                               .unit = line.unit(),
                               .program = line.program(),
                               .priority = line.priority(),
                               .message = RedactedText(line.message())});
    }
    return journal;
  }

  std::string RedactedText(std::string text) const {
    for (const auto& [value, skip] : searched_) {
      for (size_t at = text.find(value); at != std::string::npos;
           at = text.find(value, at + value.size())) {
        text.replace(at + skip, value.size() - skip, value.size() - skip,
                     kFill);
      }
    }
    std::vector<std::string> words;
    std::vector<size_t> begins;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      begins.push_back(at);
      words.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    for (const auto& [index, from, pattern] : rules_.DroppedIn(words)) {
      const size_t size = words[index].size() - from;
      text.replace(begins[index] + from, size, size, kFill);
    }
    return text;
  }

  // The bytes of `word`, which is at `addr` (0: not known), from `from` on.
  bool AddValue(uint64_t addr, const std::string& word, size_t from) {
    const std::string text = word.substr(from);
    if (text.empty() || IsFilled(text)) {
      return false;
    }
    values_.push_back({.addr = addr == 0 ? 0 : addr + from, .text = text});
    if (text.size() >= kSearchedBytesMin) {
      searched_.emplace(text, 0);
    } else if (word.size() >= kSearchedBytesMin) {
      searched_.emplace(word, from);
    }
    return true;
  }

  // Where in `bytes` values are that are to be overwritten: at their address,
  // and anywhere if `search`. Ordered, without overlaps.
  Result<std::vector<Patch>> PatchesIn(std::span<const std::byte> bytes,
                                       uint64_t offset,
                                       std::optional<uint64_t> addr,
                                       bool search) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;  // begin, end
    for (const Value& value : values_) {
      const uint64_t at = addr ? value.addr - *addr : bytes.size();
      if (value.addr != 0 && at < bytes.size() &&
          value.text.size() <= bytes.size() - at &&
          std::memcmp(bytes.data() + at, value.text.data(),
                      value.text.size()) == 0) {
        ranges.emplace_back(at, at + value.text.size());
      }
    }
    for (const auto& [text, skip] : searched_) {
      CLEW_RETURN_IF_ERROR(search ? Search(bytes, text, skip, ranges)
                                  : Status());
    }
    std::ranges::sort(ranges);
    std::vector<Patch> patches;
    uint64_t end = 0;
    for (const auto& [from, to] : ranges) {
      const uint64_t begin = std::max(from, end);
      if (begin < to) {
        patches.push_back({.offset = offset + begin,
                           .bytes = std::vector<std::byte>(
                               to - begin, static_cast<std::byte>(kFill))});
        end = to;
      }
    }
    copies_ += patches.size();
    return patches;
  }

  // Of each copy the first `skip` bytes stay.
  Status Search(std::span<const std::byte> bytes, const std::string& text,
                size_t skip,
                std::vector<std::pair<uint64_t, uint64_t>>& ranges) const {
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    while (at != nullptr && at < end) {
      at = static_cast<const std::byte*>(
          memmem(at, static_cast<size_t>(end - at), text.data(), text.size()));
      if (at != nullptr) {
        const auto from = static_cast<uint64_t>(at - bytes.data());
        ranges.emplace_back(from + skip, from + text.size());
        at += text.size();
      }
      if (ranges.size() > kRedactionCopiesMax) {
        return LimitReached(
            "{}: more than {} copies of values to be dropped; drop the memory "
            "that holds them",
            folder_, kRedactionCopiesMax);
      }
    }
    return {};
  }

  SegmentKind KindOf(const RewrittenSegment& segment, bool heap) const {
    if (segment.holds_stack) {
      return SegmentKind::kStack;
    }
    if (!segment.path.empty()) {
      return SegmentKind::kFile;
    }
    return heap ? SegmentKind::kHeap : SegmentKind::kAnonymous;
  }

  Status ChooseSegments() {
    if (!core_ || !rules_.has_core_rules()) {
      return {};
    }
    const uint64_t brk = start_ == nullptr ? 0 : start_->brk();
    if (rules_.NamesHeap() && brk == 0) {
      return Unsupported(
          "{}: a rule names [heap], and nothing tells where it is; name "
          "anonymous, which includes it",
          folder_);
    }
    const uint64_t heap_at = RoundUpToPage(brk);
    auto& segments = core_->segments();
    SpreadStacks(segments);
    const RewrittenSegment* before = nullptr;
    bool before_is_heap = false;
    for (RewrittenSegment& segment : segments) {
      const Elf64_Phdr& header = segment.header;
      const bool heap =
          brk != 0 && segment.path.empty() &&
          (brk - header.p_vaddr < header.p_memsz || header.p_vaddr == heap_at ||
           (before_is_heap && DumpRewriter::Continues(*before, segment)));
      const SegmentKind kind = KindOf(segment, heap);
      segment.dropped =
          header.p_filesz != 0 && rules_.DropsSegment(kind, segment.path);
      if (segment.dropped) {
        Dropped& sum = dropped_[kind];
        ++sum.segments;
        sum.bytes += header.p_filesz;
      }
      before = &segment;
      before_is_heap = heap;
    }
    SayDropped();
    return {};
  }

  // A stack may be in several segments, with zeros left out between them.
  static void SpreadStacks(std::vector<RewrittenSegment>& segments) {
    for (size_t i = 1; i < segments.size(); ++i) {
      segments[i].holds_stack |=
          segments[i - 1].holds_stack &&
          DumpRewriter::Continues(segments[i - 1], segments[i]);
    }
    for (size_t i = segments.size(); i-- > 1;) {
      segments[i - 1].holds_stack |=
          segments[i].holds_stack &&
          DumpRewriter::Continues(segments[i - 1], segments[i]);
    }
  }

  void SayDropped() {
    const std::pair<SegmentKind, const char*> kNames[] = {
        {SegmentKind::kStack, "[stack]"},
        {SegmentKind::kHeap, "[heap]"},
        {SegmentKind::kAnonymous, "anonymous"},
        {SegmentKind::kFile, "file"}};
    for (const auto& [kind, name] : kNames) {
      if (const auto sum = dropped_.find(kind); sum != dropped_.end()) {
        lines_.push_back(fmt::format("core: {}, {} segments, {} bytes", name,
                                     sum->second.segments, sum->second.bytes));
      }
    }
  }

  Status PlanCore() {
    if (!core_) {
      return {};
    }
    for (const RewrittenSegment& segment : core_->segments()) {
      if (segment.dropped || (segment.header.p_flags & PF_W) == 0) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(
          found, PatchesIn(core_->BytesOf(segment), segment.header.p_offset,
                           segment.header.p_vaddr, true));
      std::ranges::move(found, std::back_inserter(core_patches_));
    }
    AddArgumentsNote(*core_, core_patches_);
    AddRegisterNotes(*core_, core_patches_);
    return {};
  }

  // The note has the first 80 bytes of the command line, so perhaps a part of a
  // value.
  void AddArgumentsNote(const DumpRewriter& core,
                        std::vector<Patch>& patches) const {
    if (!options_.empty()) {
      AddZeros(core, core.arguments(), patches);
    }
  }

  // Registers hold parts of what was copied or compared last.
  void AddRegisterNotes(const DumpRewriter& core,
                        std::vector<Patch>& patches) const {
    for (const DumpRewriter::Range& range : core.vector_registers()) {
      if (!values_.empty()) {
        AddZeros(core, range, patches);
      }
    }
  }

  static void AddZeros(const DumpRewriter& core,
                       const DumpRewriter::Range& range,
                       std::vector<Patch>& patches) {
    std::vector<std::byte> zeros(range.bytes);
    if (!std::ranges::equal(core.bytes().subspan(range.offset, range.bytes),
                            zeros)) {
      patches.push_back({.offset = range.offset, .bytes = std::move(zeros)});
    }
  }

  Status PlanStart() {
    if (start_ == nullptr || rules_.drops_start()) {
      return {};
    }
    for (pb::Segment& segment : *start_->mutable_segments()) {
      std::string& data = *segment.mutable_data();
      CLEW_ASSIGN_OR_RETURN(
          patches, PatchesIn(std::as_bytes(std::span(data)), 0, segment.addr(),
                             (segment.prot() & 2) != 0));
      for (const Patch& patch : patches) {
        data.replace(patch.offset, patch.bytes.size(), patch.bytes.size(),
                     kFill);
        start_changed_ = true;
      }
    }
    if (!values_.empty()) {
      ClearVectorRegisters();
    }
    return {};
  }

  // For the same reason as AddRegisterNotes.
  void ClearVectorRegisters() {
    start_changed_ |= !start_->xsave().empty();
    start_->clear_xsave();
    for (pb::StartThread& thread : *start_->mutable_other_threads()) {
      start_changed_ |= !thread.xsave().empty();
      thread.clear_xsave();
    }
  }

  // A file in which values are bytes among others.
  struct PlainFile {
    const char* name;
    bool drop = false;
    std::vector<Patch> patches = {};
  };

  Status PlanPlain(PlainFile& plain) {
    if (!Exists(Path(plain.name)) || plain.drop || searched_.empty()) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(Path(plain.name)));
    CLEW_ASSIGN_OR_RETURN(patches,
                          PatchesIn(file.bytes(), 0, std::nullopt, true));
    plain.patches = std::move(patches);
    return {};
  }

  void SayRemoved() {
    if (start_ != nullptr && rules_.drops_start()) {
      lines_.push_back("start state: all of it");
    }
    if (inputs_.drop && Exists(Path(inputs_.name))) {
      lines_.push_back("inputs: all of them");
    }
    if (manifest_.has_settings()) {
      lines_.push_back("settings: environment and arguments to repeat with");
    }
  }

  Status EditRedactions() {
    ManifestEdits edits;
    for (const std::string& line : lines_) {
      if (std::ranges::find(manifest_.redactions(), line) ==
          manifest_.redactions().end()) {
        edits.redactions.push_back(line);
      }
    }
    if (manifest_.journal_size() > 0) {
      edits.journal = RedactedJournal();
    }
    edits.drop_settings = manifest_.has_settings();
    return edits.redactions.empty() && !edits.journal && !edits.drop_settings
               ? Status()
               : EditManifest(files_, folder_, edits);
  }

  // Core dump and start state come last: the next call finds the values in them
  // if this one does not come to its end.
  Status Apply() {
    CLEW_RETURN_IF_ERROR(ApplyPlain(inputs_));
    CLEW_RETURN_IF_ERROR(ApplyPlain(perf_data_));
    if (!core_patches_.empty() || !dropped_.empty()) {
      CLEW_RETURN_IF_ERROR(Replace("core", [&](WritableFile& to) {
        return core_->Write(to, std::move(core_patches_));
      }));
    }
    if (start_ != nullptr && rules_.drops_start()) {
      return Remove("start.pb");
    }
    return start_changed_ ? ReplaceMessage(files_, folder_, "start.pb", *start_)
                          : Status();
  }

  Status ApplyPlain(const PlainFile& plain) {
    if (plain.drop) {
      return Remove(plain.name);
    }
    if (plain.patches.empty()) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(Path(plain.name)));
    return Replace(plain.name, [&](WritableFile& to) {
      return AppendPatched(to, file.bytes(), 0, plain.patches);
    });
  }

  Status Remove(const char* name) {
    CLEW_RETURN_IF_ERROR(files_.RemoveAll(Path(name)));
    return files_.SyncDirectory(folder_);
  }

  template <class Write>
  Status Replace(const char* name, const Write& write) {
    const std::string partial = Path(name) + ".partial";
    CLEW_ASSIGN_OR_RETURN(file, files_.Create(partial));
    CLEW_RETURN_IF_ERROR(write(*file));
    CLEW_RETURN_IF_ERROR(file->Sync());
    file.reset();
    CLEW_RETURN_IF_ERROR(files_.Rename(partial, Path(name)));
    return files_.SyncDirectory(folder_);
  }

  void SayValues() {
    if (!variables_.empty()) {
      lines_.push_back(
          fmt::format("environment: values of {}", Listed(variables_)));
    }
    if (!options_.empty() && !values_.empty()) {
      lines_.push_back(
          fmt::format("arguments: values of {}", Listed(options_)));
    }
    if (copies_ > 0) {
      lines_.push_back(
          fmt::format("memory: {} copies of these values", copies_));
    }
  }

  struct Dropped {
    uint64_t segments = 0;
    uint64_t bytes = 0;
  };

  FileSystem& files_;
  const std::string& folder_;
  const RedactionRules& rules_;
  pb::Manifest manifest_;
  std::optional<DumpRewriter> core_;
  std::unique_ptr<pb::Start> start_;
  std::vector<Value> values_;
  std::map<std::string, size_t> searched_;  // and how much of it stays
  std::set<std::string> variables_;
  std::set<std::string> options_;
  std::map<SegmentKind, Dropped> dropped_;
  uint64_t copies_ = 0;
  std::vector<Patch> core_patches_;
  bool start_changed_ = false;
  PlainFile inputs_ = {.name = "inputs.pb", .drop = rules_.drops_inputs()};
  PlainFile perf_data_ = {.name = "perf.data"};
  std::optional<std::vector<std::string>> command_;
  std::vector<std::string> lines_;
};

}  // namespace

Result<std::vector<std::string>> Redact(FileSystem& files,
                                        const std::string& folder,
                                        const RedactionRules& rules) {
  return Redaction(files, folder, rules).Run();
}

}  // namespace clew::recorder
