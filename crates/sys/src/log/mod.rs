//! A layer under SQLite that writes a commit's pages to the log in one call.
//!
//! SQLite writes a log page by page, each in two calls, and every call costs the system about as much as writing all of
//! them at once: a third of the time of a small commit. This layer gathers consecutive writes to a log, and passes them
//! on when SQLite calls anything else: above all a flush, which comes before any connection sees the commit. So nothing
//! is less durable, and other connections read the same. All other files are SQLite's own.
//!
//! It is for connections that flush every commit (`synchronous = FULL`) and write nothing before it (`cache_spill =
//! OFF`). Otherwise the gathered bytes of a transaction that is rolled back would be written when another connection
//! may write there.
//!
//! All of it is unsafe because SQLite calls it. It relies on this: SQLite hands every call a file that `open` made,
//! from one thread at a time, and stops after `close`.

mod gathered;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use rusqlite::ffi;

use gathered::Gathered;

/// The name under which connections ask for this layer.
const NAME: &CStr = c"dacapo";

/// Room for a file of the layer below, should another than SQLite's own be put in place later.
const ROOM: c_int = 256;

/// A log of this layer, as SQLite allocates it.
#[repr(C)]
struct Log {
    base: ffi::sqlite3_file,
    state: *mut State,
}

struct State {
    /// The file of the layer below. Words, because it holds pointers.
    below: Box<[u64]>,
    gathered: Gathered,
    /// Whether writes are gathered. Not where a write may damage bytes beside it: there SQLite writes more after the
    /// flush, and expects to find it in the file.
    gathers: bool,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // SQLite uses shared memory and mapping on the database file, and not on its log.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Registers the layer with SQLite, once for the process, and returns its name for
/// `Connection::open_with_flags_and_vfs`. None if SQLite refuses it; SQLite's own layer can be used as well.
pub fn install() -> Option<&'static str> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let installed = *INSTALLED.get_or_init(|| {
        let Some(below) = below() else { return false };
        // SAFETY: a layer is a struct that may be copied: its functions get a pointer to the one they are called on.
        let mut ours = unsafe { std::ptr::read(below) };
        ours.szOsFile = (size_of::<Log>() as c_int).max(ours.szOsFile) + ROOM;
        ours.zName = NAME.as_ptr();
        ours.pNext = std::ptr::null_mut();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        // SQLite owns it from here on, for ever.
        let ours = Box::into_raw(Box::new(ours));
        // SAFETY: it lives for ever, and no other code has it.
        unsafe { ffi::sqlite3_vfs_register(ours, 0) == ffi::SQLITE_OK }
    });
    // A string, and no C string: rusqlite takes both only from 0.34 on.
    installed.then(|| NAME.to_str().expect("the name is ASCII"))
}

/// Returns the layer below: SQLite's default at the moment, which is never this one.
fn below() -> Option<*mut ffi::sqlite3_vfs> {
    // SAFETY: this asks SQLite for one of its own, which live for ever.
    let below = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    (!below.is_null()).then_some(below)
}

/// Calls a method of the file below.
macro_rules! pass_on {
    ($state:expr, $method:ident $(, $argument:expr)*) => {{
        let below: *mut ffi::sqlite3_file = $state.below.as_mut_ptr().cast();
        // SAFETY: it is open, so it has methods, and these are its own arguments.
        unsafe { ((*(*below).pMethods).$method.expect("a file has all methods of the first version"))(below $(, $argument)*) }
    }};
}

unsafe extern "C" fn open(
    ours: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite hands over a file to be filled, and its own layer.
    let room = unsafe {
        (*file).pMethods = std::ptr::null();
        (*ours).szOsFile
    };
    let Some(layer) = below() else { return ffi::SQLITE_CANTOPEN };
    // SAFETY: a registered layer lives for ever, and can open files.
    let (size, open_below) = unsafe { ((*layer).szOsFile, (*layer).xOpen.expect("it opens files")) };
    if flags & ffi::SQLITE_OPEN_WAL == 0 {
        return match size <= room {
            // SAFETY: there is room for its file, and it is its own from here on.
            true => unsafe { open_below(layer, name, file, flags, out) },
            false => ffi::SQLITE_CANTOPEN,
        };
    }
    let mut below = vec![0_u64; (size.max(0) as usize).div_ceil(8)].into_boxed_slice();
    // SAFETY: there is room for its file.
    let opened = unsafe { open_below(layer, name, below.as_mut_ptr().cast(), flags, out) };
    // SAFETY: the layer below has filled the beginning of it, or left the zeros.
    if unsafe { (*below.as_ptr().cast::<ffi::sqlite3_file>()).pMethods.is_null() } {
        return opened;
    }
    let mut state = Box::new(State { below, gathered: Gathered::default(), gathers: true });
    state.gathers = pass_on!(state, xDeviceCharacteristics) & ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE != 0;
    // SAFETY: SQLite allocated `szOsFile` bytes, which is room for a log.
    unsafe {
        (*file.cast::<Log>()).state = Box::into_raw(state);
        (*file).pMethods = &raw const METHODS;
    }
    opened
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, flushes_folder: c_int) -> c_int {
    let Some(layer) = below() else { return ffi::SQLITE_IOERR_DELETE };
    // SAFETY: passed on as it came.
    unsafe { ((*layer).xDelete.expect("it deletes files"))(layer, name, flushes_folder) }
}

/// SAFETY: `file` was made by `open` and is not closed, and no other thread uses it meanwhile.
unsafe fn state<'a>(file: *mut ffi::sqlite3_file) -> &'a mut State {
    // SAFETY: `open` put it there, and it lives until `close`.
    unsafe { &mut *(*file.cast::<Log>()).state }
}

impl State {
    /// Writes the gathered bytes. They are dropped also if that fails: SQLite does not rely on a write that failed.
    fn settle(&mut self) -> c_int {
        let Some((at, bytes)) = self.gathered.take() else { return ffi::SQLITE_OK };
        let written = pass_on!(self, xWrite, bytes.as_ptr().cast(), bytes.len() as c_int, at);
        self.gathered.give_back(bytes);
        written
    }
}

/// Writes the gathered bytes, then calls a method of the file below, which must find them there.
macro_rules! settled {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        // SAFETY: SQLite calls this on an open file.
        let state = unsafe { state($file) };
        match state.settle() {
            ffi::SQLITE_OK => pass_on!(state, $method $(, $argument)*),
            failed => failed,
        }
    }};
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, amount: c_int, at: i64) -> c_int {
    // SAFETY: an open file, and this many bytes from there on.
    let (state, bytes) =
        unsafe { (state(file), std::slice::from_raw_parts(from.cast::<u8>(), amount.max(0) as usize)) };
    if !state.gathers {
        return pass_on!(state, xWrite, from, amount, at);
    }
    if state.gathered.add(at, bytes) {
        return ffi::SQLITE_OK;
    }
    match state.settle() {
        ffi::SQLITE_OK if state.gathered.add(at, bytes) => ffi::SQLITE_OK,
        ffi::SQLITE_OK => pass_on!(state, xWrite, from, amount, at),
        failed => failed,
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: `open` put it there, and SQLite calls nothing after this.
    let mut state = unsafe { Box::from_raw((*file.cast::<Log>()).state) };
    // Bytes that were not flushed belong to no commit, and another connection may write there by now.
    pass_on!(state, xClose)
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, amount: c_int, at: i64) -> c_int {
    settled!(file, xRead, to, amount, at)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    settled!(file, xTruncate, size)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    settled!(file, xSync, flags)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    settled!(file, xFileSize, size)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    settled!(file, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    settled!(file, xUnlock, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    settled!(file, xCheckReservedLock, out)
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    settled!(file, xFileControl, operation, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls this on an open file.
    let state = unsafe { state(file) };
    pass_on!(state, xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls this on an open file.
    let state = unsafe { state(file) };
    pass_on!(state, xDeviceCharacteristics)
}
