#ifndef CLEW_RECORDER_SOFTWARE_ENCODER_DESCRIPTION_H_
#define CLEW_RECORDER_SOFTWARE_ENCODER_DESCRIPTION_H_

#include "bundle/perf_data/perf_data_writer.h"
#include "recorder/pt_encoder/encoder_config.h"

namespace clew::recorder {

// Sets what a reader of `config`'s perf.data has to know of the encoder that
// made its PT. REQUIRES: Validate(encoder).
void DescribeEncoder(const EncoderConfig& encoder,
                     bundle::PerfDataConfig& config);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_ENCODER_DESCRIPTION_H_
