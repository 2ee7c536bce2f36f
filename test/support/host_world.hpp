#ifndef COACCEL_TEST_SUPPORT_HOST_WORLD_HPP
#define COACCEL_TEST_SUPPORT_HOST_WORLD_HPP

#include "host/factory.hpp"
#include "support/context_driver.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <cstdint>

namespace test {

/// Contexts on the CPU.
class host_world final : public context_world {
public:
    explicit host_world(const coaccel::host_options& o = {}) : host(o) {}

    coaccel::detail::context_factory factory() override
    {
        host.injector = &injector;
        return coaccel::host::make_factory(host);
    }

    void poison() override { injector.poison(); }

    bool limit_memory(std::uint64_t bytes) override
    {
        host.memory_limit = bytes;
        return true;
    }

    coaccel::fault_injector injector;
    /// Of contexts created later.
    coaccel::host_options host;
};

} // namespace test

#endif
