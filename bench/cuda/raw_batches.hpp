#ifndef COACCEL_BENCH_CUDA_RAW_BATCHES_HPP
#define COACCEL_BENCH_CUDA_RAW_BATCHES_HPP

#include "raw_requests.hpp"

#include <deque>
#include <vector>

namespace coaccel::bench {

/// Full batches of requests in plain CUDA, back to back from one thread. While one batch runs, the inputs of the next
/// are gathered from the callers' memory, and the answers of the one before are scattered to it.
class raw_batches {
public:
    raw_batches(const raw_gpu& raw, const request_shape& shape, std::size_t rows);

    /// The seconds per request.
    double time(int batches);

private:
    struct caller {
        std::vector<float> input;
        std::vector<float> output;
    };

    /// The memory of one batch on its way.
    struct slot {
        slot(const raw_gpu& raw, std::size_t floats);
        slot(const slot&) = delete;
        slot& operator=(const slot&) = delete;
        ~slot();

        const raw_gpu& raw;
        raw_pinned input;
        raw_pinned output;
        raw_memory x;
        raw_memory y;
        CUevent end = nullptr;
    };

    void start(slot& s);
    void finish(slot& s);

    const raw_gpu& raw_;
    const request_shape shape_;
    const std::size_t rows_;
    raw_matrix matrix_;
    raw_lane lane_;
    std::deque<slot> slots_;
    std::vector<caller> callers_;
};

} // namespace coaccel::bench

#endif
