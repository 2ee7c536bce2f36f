#include "cuda/prim/warm_kernels.hpp"

#include "cuda/driver/driver_api.hpp"
#include "cuda/inspect.hpp"
#include "cuda/jit/disk_cache.hpp"
#include "cuda/prim/kernel_names.hpp"
#include "cuda/prim/kernel_source.hpp"
#include "cuda/prim/prim_kernels.hpp"

#include <coaccel/core/log.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace coaccel::cuda {
namespace {

/// A cache that cannot store finds nothing later, and does not say so itself.
error_code check_cache()
{
    const auto folder = disk_cache::default_folder();
    if (folder.empty())
        return make_error_with_message(errc::start_failed, "there is no folder for compiled kernels: set "
                                                           "COACCEL_CACHE_DIR, XDG_CACHE_HOME or HOME");
    const disk_cache cache(folder, jit::compile_options::default_cache_limit);
    const std::string key = "test of warm_kernels";
    if (!cache.store(key, {}))
        return make_error_with_message(errc::start_failed,
                                       "cannot write to the folder for compiled kernels: " + folder);
    (void)::unlink(cache.file_of(key).c_str());
    return {};
}

/// The work of all threads.
class warming {
public:
    warming(const std::vector<std::string>& names, const compile_target& target, const warm_progress& progress)
        : names_(names), target_(target), progress_(progress), source_(prim_kernel_source())
    {}

    void run() noexcept
    {
        while (const std::string* name = take()) {
            error_code ec;
            try {
                ec = compile_and_store(*name);
            } catch (const std::bad_alloc&) {
                ec = errc::out_of_memory;
            }
            finished(ec);
        }
    }

    error_code error() const { return error_; }

private:
    /// The log of the compiler does not name the kernel, because all of them have one source.
    error_code with_name(const std::string& name, const error_code& ec) const
    {
        if (ec != errc::compile_failed)
            return ec;
        return make_error_with_message(errc::compile_failed, name + ", architecture " +
                                                                 std::to_string(target_.architecture) + ": " +
                                                                 ec.message());
    }

    /// `compile` does not tell whether it could store the code: on a full disk it cannot.
    error_code compile_and_store(const std::string& name) const
    {
        for (int attempt = 0; attempt < 2; ++attempt) {
            const auto made = compile(source_, prim_compile_options(name), target_);
            if (!made)
                return with_name(name, made.error());
            if (made.value().from_cache())
                return {};
        }
        const bool found_headers = can_cache(source_, prim_compile_options(name), target_);
        return make_error_with_message(
            errc::start_failed,
            "cannot store the compiled kernel " + name +
                (found_headers ? " in the folder " + disk_cache::default_folder()
                               : ": a folder of the headers of CUDA is missing, so the cache cannot identify it"));
    }

    const std::string* take()
    {
        const std::scoped_lock lock(mutex_);
        return error_ || next_ == names_.size() ? nullptr : &names_[next_++];
    }

    void finished(const error_code& ec)
    {
        const std::scoped_lock lock(mutex_);
        if (ec) {
            if (!error_)
                error_ = ec;
            return;
        }
        ++done_;
        if (progress_)
            progress_(done_, names_.size());
    }

    const std::vector<std::string>& names_;
    const compile_target target_;
    const warm_progress& progress_;
    const std::string source_;
    std::mutex mutex_;
    std::size_t next_ = 0;
    std::uint64_t done_ = 0;
    error_code error_;
};

} // namespace

result<std::vector<int>> gpu_architectures(const system_info& machine)
{
    std::vector<int> all;
    for (const gpu_report& gpu : machine.gpus)
        all.push_back(gpu.compute_capability);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (!all.empty())
        return all;
    const auto driver = std::ranges::find(machine.libraries, to_string(driver_api::library), &library_report::name);
    if (driver == machine.libraries.end())
        return make_error_with_message(errc::no_device, "there is no GPU");
    return make_error_with_message(driver->path.empty() ? errc::library_missing : errc::no_device,
                                   "there is no GPU: " + driver->problem);
}

error_code warm_kernels(const std::vector<std::string>& names, const compile_target& target, unsigned threads,
                        const warm_progress& progress)
{
    if (auto ec = check_cache())
        return ec;
    warming all(names, target, progress);
    std::vector<std::jthread> others;
    try {
        for (unsigned t = 1; t < threads; ++t)
            others.emplace_back([&all] { all.run(); });
    } catch (const std::system_error&) {
        // Fewer threads do the same work.
    }
    all.run();
    others.clear();
    return all.error();
}

result<std::uint64_t> warm_kernels(const std::vector<std::string>& names, const std::vector<int>& architectures,
                                   compile_target target, unsigned threads, const warm_progress& progress)
{
    std::uint64_t total = names.size() * architectures.size();
    std::uint64_t before = 0;
    std::string refused;
    for (const int architecture : architectures) {
        target.architecture = architecture;
        const auto ec = warm_kernels(names, target, threads, [&](std::uint64_t done, std::uint64_t) {
            if (progress)
                progress(before + done, total);
        });
        if (ec == errc::invalid_argument) {
            total -= names.size();
            refused.append(refused.empty() ? "" : "; ").append(ec.message());
        } else if (ec) {
            return ec;
        } else {
            before += names.size();
        }
    }
    if (before == 0 && !refused.empty())
        return make_error_with_message(errc::invalid_argument, std::move(refused));
    if (!refused.empty())
        detail::log(log_level::warning, "kernels were not compiled for all GPUs: " + refused);
    return total;
}

result<std::uint64_t> warm_kernels(const warm_progress& progress)
{
    system_info machine;
    inspect(machine);
    BOOST_OUTCOME_TRY(const auto architectures, gpu_architectures(machine));
    BOOST_OUTCOME_TRY(const auto* driver, driver_api::load());
    BOOST_OUTCOME_TRY(const auto* nvrtc, nvrtc_api::load());
    // Each thread of the compiler takes hundreds of megabytes.
    constexpr unsigned most_threads = 32;
    return warm_kernels(prim_kernel_names(), architectures, {.driver_version = driver->version, .nvrtc = nvrtc},
                        std::clamp(std::thread::hardware_concurrency(), 1u, most_threads), progress);
}

} // namespace coaccel::cuda
