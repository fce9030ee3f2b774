// What a redaction takes from strangers: a core dump. The program that died
// wrote its memory, so it says what the dump's stack, strings and registers
// hold. A refusal must leave the bundle as it was; a redacted dump must have
// the same segments, none of a dropped kind with bytes, and what is kept as it
// was, but for values in writable memory.

#include "recorder/redaction/redaction.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bundle/core_dump/dump_rewriter.h"
#include "common/check.h"
#include "common/os/file.h"
#include "proto/bundle.pb.h"

namespace {

using namespace clew;          // NOLINT: a fuzz target is one function
using namespace clew::bundle;  // NOLINT

using Bytes = std::vector<std::byte>;

// In memory, where a sync costs nothing.
class Folder {
 public:
  Folder() {
    CLEW_CHECK(mkdtemp(path_.data()) != nullptr, "no folder {}", path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string Core() const { return path_ + "/core"; }
  std::string Manifest() const { return path_ + "/manifest.pb"; }

 private:
  std::string path_ = "/dev/shm/clew-redaction-fuzz-XXXXXX";
};

void Write(const std::string& path, std::span<const std::byte> bytes) {
  CLEW_CHECK(WriteWholeFile(PosixFileSystem(), path, bytes).has_value(),
             "cannot write {}", path);
}

Bytes Read(const std::string& path) {
  const auto bytes = ReadWholeFile(path);
  CLEW_CHECK(bytes.has_value(), "cannot read {}", path);
  return {bytes->begin(), bytes->end()};
}

std::string ManifestText() {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  for (const char* word : {"prog", "--password", "hunter2-correct-horse"}) {
    manifest.add_command(word);
  }
  return manifest.SerializeAsString();
}

void CheckSegment(const DumpRewriter& before, const DumpRewriter& after,
                  size_t i, bool values) {
  const RewrittenSegment& was = before.segments()[i];
  const RewrittenSegment& is = after.segments()[i];
  CLEW_CHECK(was.header.p_vaddr == is.header.p_vaddr &&
                 was.header.p_memsz == is.header.p_memsz,
             "segment {} is another", i);
  if (!was.path.empty() && !was.holds_stack) {
    CLEW_CHECK(is.header.p_filesz == 0, "segment {} was not dropped", i);
  } else if (!values || (was.header.p_flags & PF_W) == 0) {
    CLEW_CHECK(std::ranges::equal(before.BytesOf(was), after.BytesOf(is)),
               "segment {} is kept and has other bytes", i);
  }
}

// `original` is the path of the dump as it was; `values`: whether some may be
// overwritten, in what is writable.
void CheckRedacted(const std::string& original, const std::string& redacted,
                   bool values) {
  const auto before = DumpRewriter::Open(original);
  const auto after = DumpRewriter::Open(redacted);
  CLEW_CHECK(before.has_value(), "what cannot be read was redacted");
  CLEW_CHECK(after.has_value(), "a redacted dump cannot be read: {}",
             after ? "" : after.error().message);
  CLEW_CHECK(before->segments().size() == after->segments().size(),
             "a segment was lost");
  for (size_t i = 0; i < before->segments().size(); ++i) {
    CheckSegment(*before, *after, i, values);
  }
}

// `text`: rules, one of which is "core drop file".
void RedactBy(const Folder& folder, const char* text,
              std::span<const std::byte> core) {
  static const std::string manifest = ManifestText();
  const std::string original = folder.path() + "/original";
  const auto rules = recorder::RedactionRules::Parse(text, "rules");
  CLEW_CHECK(rules.has_value(), "rules");
  Write(original, core);
  Write(folder.Core(), core);
  Write(folder.Manifest(), std::as_bytes(std::span(manifest)));
  if (recorder::Redact(PosixFileSystem(), folder.path(), *rules)) {
    CheckRedacted(original, folder.Core(), rules->has_environment_rules());
    return;
  }
  CLEW_CHECK(std::ranges::equal(Read(folder.Core()), core) &&
                 std::ranges::equal(Read(folder.Manifest()),
                                    std::as_bytes(std::span(manifest))),
             "a refusal changed the bundle");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const auto core = std::as_bytes(std::span(data, size));
  RedactBy(folder, "core drop file", core);
  RedactBy(folder,
           "core drop file\nenvironment drop *TOKEN*\n"
           "arguments drop-after --password",
           core);
  return 0;
}
