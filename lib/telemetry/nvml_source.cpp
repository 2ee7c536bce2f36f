#include "telemetry/nvml_sampler.hpp"

#include <coaccel/telemetry/nvml_source.hpp>

namespace coaccel::telemetry {

nvml_source::nvml_source(const nvml_options& options)
    : sampler_(std::make_shared<detail::nvml_sampler>(options.interval, detail::nvml_api::load))
{}

nvml_source::nvml_source(const nvml_source&) = default;
nvml_source& nvml_source::operator=(const nvml_source&) = default;
nvml_source::~nvml_source() = default;

void nvml_source::operator()(metric_writer& out) const
{
    detail::write_gpus(out, sampler_->latest());
}

error_code nvml_source::error() const
{
    return sampler_->error();
}

} // namespace coaccel::telemetry
