#ifndef COACCEL_TEST_UNIT_SERVER_POISONABLE_MODELS_HPP
#define COACCEL_TEST_UNIT_SERVER_POISONABLE_MODELS_HPP

#include "support/poison.hpp"
#include "unit/server/server_fixture.hpp"

namespace test {

/// The model of poison.hpp as a file: rows of four floats, each of which can end the process of its context or sleep.
inline coaccel::plan_set_description poisonable_set(std::vector<std::uint32_t> sizes = {1, 8})
{
    namespace ca = coaccel;
    ca::plan_set_builder set("poisonable");
    for (const auto rows : sizes) {
        auto& b = set.plan("poisonable" + std::to_string(rows));
        const auto x = b.input<float>(ca::batch_of(rows, {{poison_elements}}), "x");
        const auto y = b.output<float>(ca::batch_of(rows, {{poison_elements}}), "y");
        for (std::uint32_t r = 0; r < rows; ++r)
            b.add(ca::pure(ca::plugin::call("twice", ca::in(x.subspan(r * poison_elements, poison_elements)),
                                            ca::out(y.subspan(r * poison_elements, poison_elements)))));
    }
    auto made = set.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

/// A request that sleeps for this long.
inline std::string slow_request(int milliseconds)
{
    return json_request("-5," + std::to_string(milliseconds) + ",1,1");
}

/// Saves the model, and lets the device have its functions.
inline void add_poisonable(server_fixture& f, std::vector<std::uint32_t> sizes = {1, 8})
{
    save_model(f.folder.path(), "slow", 1, poisonable_set(std::move(sizes)));
    f.options.devices[0].plugin = COACCEL_TEST_POISON_PLUGIN;
}

} // namespace test

#endif
