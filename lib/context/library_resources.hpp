#ifndef COACCEL_CONTEXT_LIBRARY_RESOURCES_HPP
#define COACCEL_CONTEXT_LIBRARY_RESOURCES_HPP

#include <coaccel/core/op.hpp>

#include <array>
#include <memory>
#include <vector>

namespace coaccel::detail {

/// The handles, plans and workspaces of one library, for one lane or for a whole context.
class library_resources {
public:
    library_resources() = default;
    library_resources(const library_resources&) = delete;
    library_resources& operator=(const library_resources&) = delete;
    /// Makes no call of a vendor library.
    virtual ~library_resources() = default;

    /// Returns everything to the driver and the vendor library. Preconditions: no other thread uses the resources, the
    /// streams are idle, the context is current and healthy. Not called for a dead context.
    virtual void destroy() noexcept {}

    /// The number of handles, plans and generators that exist.
    virtual std::size_t count() const noexcept = 0;
};

/// The resources of all libraries, for one lane or for a whole context. Those of a library are made on its first use.
class resource_set {
public:
    /// `Resources::lib` is the library. `arguments` construct the resources on first use.
    template <class Resources, class... Arguments>
    Resources& get(Arguments&&... arguments)
    {
        library_resources*& found = by_library_[static_cast<std::size_t>(Resources::lib)];
        if (!found) {
            made_.push_back(std::make_unique<Resources>(static_cast<Arguments&&>(arguments)...));
            found = made_.back().get();
        }
        return static_cast<Resources&>(*found);
    }

    std::size_t count() const noexcept
    {
        std::size_t all = 0;
        for (const auto& r : made_)
            all += r->count();
        return all;
    }

    /// In the reverse order of creation. Preconditions: as for library_resources.
    void destroy() noexcept
    {
        for (; !made_.empty(); made_.pop_back())
            made_.back()->destroy();
        by_library_ = {};
    }

private:
    std::array<library_resources*, library_count> by_library_{};
    std::vector<std::unique_ptr<library_resources>> made_;
};

} // namespace coaccel::detail

#endif
