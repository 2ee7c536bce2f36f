#ifndef COACCEL_CUDA_BLAS_BLAS_CONTEXT_HPP
#define COACCEL_CUDA_BLAS_BLAS_CONTEXT_HPP

#include "context/library_resources.hpp"
#include "cuda/blas/address_kernel.hpp"
#include "cuda/blas/tuned_algorithms.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace coaccel::cuda {

/// What the lanes of a context share for the ops of `blas`.
class blas_context final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::blas;
    /// Of the folder with the files of algorithms, which have about 400 bytes each.
    static constexpr std::uint64_t files_limit = std::uint64_t(4) << 20;

    /// A folder of their own in that of compiled kernels, so that no kernel is removed to make room for them. Empty:
    /// there is none.
    static std::string files_folder()
    {
        auto kernels = disk_cache::default_folder();
        return kernels.empty() ? kernels : kernels + "/algorithms";
    }

    void destroy() noexcept override { addresses.destroy(); }
    std::size_t count() const noexcept override { return 0; }

    /// The right to measure algorithms, until the result is destroyed, which may be on any thread. One lane has it at a
    /// time, because measurements on several lanes would disturb each other. Null: another lane has it. Call
    /// backend::notify_progress after it has been given up.
    std::shared_ptr<void> take_turn()
    {
        if (!turn_.expired())
            return nullptr;
        const auto taken = std::make_shared<char>();
        turn_ = taken;
        return taken;
    }

    address_kernel addresses;
    tuned_algorithms tuned{disk_cache(files_folder(), files_limit)};

private:
    std::weak_ptr<void> turn_;
};

} // namespace coaccel::cuda

#endif
