package clickjoin.storage;

import java.io.IOException;

/** A commit of which nobody can say whether it landed: neither its presence nor its absence could be read. */
public class CommitStateUnknownException extends IOException {
    private static final long serialVersionUID = 1L;

    public CommitStateUnknownException(String path, Throwable cause) {
        super(path + ": cannot tell whether this commit landed (" + cause + ")", cause);
    }
}
