//! Notices that the machine's clock was set, on Linux: the kernel then cancels a timer, and also when the machine
//! resumes from suspend. A thread that waits for that uses no processor time.

#[cfg(target_os = "linux")]
pub(crate) use linux::StepWatch;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::StepWatch;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use rustix::io::Errno;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };

    /// A wait for the next step of the clock.
    pub(crate) struct StepWatch {
        timer: OwnedFd,
        stop: OwnedFd,
    }

    impl StepWatch {
        pub(crate) fn new() -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let this = Self { timer, stop };
            this.arm()?;
            Ok(this)
        }

        /// Arms the timer for a moment that never comes: it is there to be cancelled.
        fn arm(&self) -> io::Result<()> {
            let never = Timespec { tv_sec: i64::MAX / 4, tv_nsec: 0 };
            let value = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: never };
            let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
            match timerfd_settime(&self.timer, flags, &value) {
                // The clock was set once more meanwhile; the timer is armed all the same.
                Ok(_) | Err(Errno::CANCELED) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }

        /// Waits until the clock was set. False once the watch is stopped, or if the system reports an error.
        pub(crate) fn wait(&self) -> bool {
            loop {
                let mut fds = [PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
                match poll(&mut fds, None) {
                    Err(Errno::INTR) => continue,
                    Err(_) => return false,
                    Ok(_) if !fds[1].revents().is_empty() => return false,
                    Ok(_) => {}
                }
                match rustix::io::read(&self.timer, &mut [0; 8]) {
                    Err(Errno::CANCELED) => return self.arm().is_ok(),
                    Err(Errno::AGAIN | Errno::INTR) | Ok(_) => {}
                    Err(_) => return false,
                }
            }
        }

        pub(crate) fn stop(&self) {
            // The counter of an event cannot be full after one write.
            let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        }
    }

    #[cfg(test)]
    mod tests {
        use std::sync::Arc;

        use super::*;

        #[test]
        fn a_watch_that_is_stopped_no_longer_waits() {
            let watch = Arc::new(StepWatch::new().unwrap());
            let waiting = watch.clone();
            let thread = std::thread::spawn(move || waiting.wait());
            watch.stop();
            assert!(!thread.join().unwrap());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::io;

    /// Other systems do not report that the clock was set.
    pub(crate) enum StepWatch {}

    impl StepWatch {
        pub(crate) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn wait(&self) -> bool {
            match *self {}
        }

        pub(crate) fn stop(&self) {
            match *self {}
        }
    }
}
