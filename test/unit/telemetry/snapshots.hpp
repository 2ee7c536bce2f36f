#ifndef COACCEL_TEST_UNIT_TELEMETRY_SNAPSHOTS_HPP
#define COACCEL_TEST_UNIT_TELEMETRY_SNAPSHOTS_HPP

#include "support/devices.hpp"
#include "telemetry/metric_names.hpp"

#include <coaccel/telemetry/registry.hpp>

#include <doctest/doctest.h>

#include <string_view>

namespace test {

/// What a registry collects now.
inline coaccel::telemetry::snapshot collect(boost::asio::io_context& io, const coaccel::telemetry::registry& metrics)
{
    return await(io, metrics.async_collect()).value();
}

/// The sample of this name and these labels, or null.
inline const coaccel::telemetry::sample* find_sample(const coaccel::telemetry::snapshot& all, std::string_view name,
                                                     const coaccel::telemetry::labels& with = {})
{
    using coaccel::detail::label_key;
    for (const auto& f : all.families)
        if (f.name == name)
            for (const auto& s : f.samples)
                if (label_key(s.labels) == label_key(with))
                    return &s;
    return nullptr;
}

/// The value of this counter or gauge; -1 if there is none.
inline double value_of(const coaccel::telemetry::snapshot& all, std::string_view name,
                       const coaccel::telemetry::labels& with = {})
{
    const auto* s = find_sample(all, name, with);
    return s ? std::get<double>(s->value) : -1;
}

} // namespace test

#endif
