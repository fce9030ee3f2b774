#ifndef CLEW_BUNDLE_PERF_DATA_FILE_KIND_H_
#define CLEW_BUNDLE_PERF_DATA_FILE_KIND_H_

#include <cstddef>
#include <span>
#include <string>

namespace clew::bundle {

// Returns whether a file begins as a perf.data of this host's byte order does.
bool IsPerfData(std::span<const std::byte> file);

// Describes for people what a file that is not a perf.data looks like, and what
// to do with it: "it looks like gzip: unpack it with gunzip first"; "nothing
// known" if by its first bytes it could be anything.
std::string DescribeOtherFile(std::span<const std::byte> file);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_FILE_KIND_H_
