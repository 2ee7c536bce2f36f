#ifndef COACCEL_TELEMETRY_REGISTRATION_HPP
#define COACCEL_TELEMETRY_REGISTRATION_HPP

#include <coaccel/core/config.hpp>

#include <memory>
#include <utility>

namespace coaccel::detail {

class registered_source;
class registry_state;

} // namespace coaccel::detail

namespace coaccel::telemetry {

/// A source that was added to a registry. The destructor removes the source, and waits if a thread is calling it.
///
/// Thread safety: distinct objects from any thread; one object from one thread at a time. The destructor may run inside
/// the source itself.
class COACCEL_DECL registration {
public:
    /// Of no source.
    registration() noexcept = default;
    registration(registration&& other) noexcept = default;
    registration& operator=(registration&& other) noexcept
    {
        if (this == &other)
            return *this;
        registration old(std::move(*this));
        registry_ = std::move(other.registry_);
        source_ = std::move(other.source_);
        return *this;
    }
    ~registration() { remove(); }

    /// Leaves the source with its registry, until that is destroyed.
    void detach() noexcept
    {
        registry_.reset();
        source_.reset();
    }

    /// Removes the source, as the destructor does.
    void remove() noexcept;

    /// For the registry.
    registration(std::weak_ptr<detail::registry_state> registry,
                 std::shared_ptr<detail::registered_source> source) noexcept
        : registry_(std::move(registry)), source_(std::move(source))
    {}

private:
    std::weak_ptr<detail::registry_state> registry_;
    std::shared_ptr<detail::registered_source> source_;
};

} // namespace coaccel::telemetry

#endif
