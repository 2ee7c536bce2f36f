#ifndef COACCEL_TEST_UNIT_CUDA_CHOSEN_LIBRARY_HPP
#define COACCEL_TEST_UNIT_CUDA_CHOSEN_LIBRARY_HPP

#include <coaccel/cuda/libraries.hpp>

#include <utility>

/// While this object exists, the library is opened from this file only.
class chosen_library {
public:
    chosen_library(coaccel::cuda::vendor_library which, std::string path) : which_(which)
    {
        coaccel::cuda::use_library(which_, std::move(path));
    }
    chosen_library(const chosen_library&) = delete;
    chosen_library& operator=(const chosen_library&) = delete;
    ~chosen_library() { coaccel::cuda::use_library(which_, {}); }

private:
    coaccel::cuda::vendor_library which_;
};

#endif
