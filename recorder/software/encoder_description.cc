#include "recorder/software/encoder_description.h"

namespace clew::recorder {

void DescribeEncoder(const EncoderConfig& encoder,
                     bundle::PerfDataConfig& config) {
  config.pt_config = PerfConfigBits(encoder);
  config.tsc_ctc_numerator = encoder.tsc_ctc_numerator;
  config.tsc_ctc_denominator = encoder.tsc_ctc_denominator;
  config.max_nonturbo_ratio = encoder.tsc_bus_ratio;
}

}  // namespace clew::recorder
