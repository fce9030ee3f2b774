#ifndef CLEW_BENCH_ENCODINGS_RECORDED_H_
#define CLEW_BENCH_ENCODINGS_RECORDED_H_

#include <string>
#include <vector>

#include "bench/encodings_table.h"
#include "common/result.h"

namespace clew::bench {

struct NamedBundle {
  std::string name;  // in the table
  std::string path;
  Form published = Form::kValues;  // what Form::kPublished means for it
};

// Records the programs of the published table into `folder`, with the first
// seed whose run fails: racey with each number of iterations, bbuf, sbuf,
// pfscan. What they print is dropped.
[[nodiscard]] Result<std::vector<NamedBundle>> RecordPrograms(
    const std::string& folder, const std::vector<uint32_t>& racey);

// Measures one recording. The formulas are about every access to the words
// that runs along the recorded paths find contested, as `clew solve` makes
// them. "default" is the whole of `clew solve`, from opening the bundle to the
// checked witness; its counts are those of the read-from encoding. A row whose
// trace cannot be built says why.
void MeasureBundle(const NamedBundle& bundle, const Settings& settings,
                   Table& table);

}  // namespace clew::bench

#endif  // CLEW_BENCH_ENCODINGS_RECORDED_H_
