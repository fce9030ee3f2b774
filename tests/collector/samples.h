#ifndef CLEW_TESTS_COLLECTOR_SAMPLES_H_
#define CLEW_TESTS_COLLECTOR_SAMPLES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "collector/store/bundle_store.h"
#include "collector/store/chunk_store.h"
#include "tests/support/power_cut_files.h"
#include "transfer/file_list.h"

namespace clew::collector {

// A folder of its own, in memory where /dev/shm has room; removed with the
// object.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const;

 private:
  std::string path_;
};

using Files = std::map<std::string, std::string>;  // path, contents

std::span<const std::byte> Bytes(std::string_view text);
void WriteFiles(const std::string& folder, const Files& files);
// Everything below a folder.
Files ReadFiles(const std::string& folder);

// A bundle as a client has it: its files, its list, its chunks.
struct Sample {
  explicit Sample(const Files& contents);
  Files files;
  FileList list;
  std::map<ChunkId, std::string> chunks;
};

// A small one: `own` is in its perf.data, `shared` in an image.
Sample SmallSample(const std::string& own, const std::string& shared);

// Sends one chunk in two parts.
Status SendChunk(ChunkStore& store, const Sample& sample,
                 const ChunkRef& chunk);
// Sends what is missing and commits.
Status SendBundle(BundleStore& store, const Sample& sample);

// A store in `folder` with no limit to speak of, its clock at `*now_s`.
BundleStore::Options StoreOptions(const std::string& folder,
                                  const uint64_t* now_s);

}  // namespace clew::collector

#endif  // CLEW_TESTS_COLLECTOR_SAMPLES_H_
